"""The connection that a caller passes as `using=`."""

from __future__ import annotations

from tickler.errors import InvalidInput


def not_a_connection(using: object, wanted: str) -> InvalidInput:
    kind = type(using)
    package = kind.__module__.partition(".")[0]
    got = f"a {kind.__name__}" if package == "builtins" else f"{package}'s {kind.__name__}"
    return InvalidInput(f"using= got {got}; pass {wanted}")
