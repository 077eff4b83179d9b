"""Raised by compiled functions: a value is not what its type says, so graphql-core has to say what becomes of it."""

from __future__ import annotations


class Surprise(Exception):  # it never leaves the executor
    """The message says where."""
