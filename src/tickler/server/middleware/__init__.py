"""What a request passes before a handler has it: from bytes on the wire to who asks, and whether it was asked before."""
