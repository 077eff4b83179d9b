"""WHAT: the values that every other package shares. They do no I/O."""
