"""Lines of Python code, indented."""

from __future__ import annotations


class Block:
    """A block with its heading. What is added to a block inside comes before what is added to this one afterwards."""

    def __init__(self, heading: str, lines: list[str] | None = None, depth: int = 0) -> None:
        self._lines: list[str] = [] if lines is None else lines
        self._depth = depth + 1
        self._lines.append("    " * depth + heading)

    def add(self, line: str) -> None:
        self._lines.append("    " * self._depth + line)

    def begin(self, heading: str) -> Block:
        return Block(heading, self._lines, self._depth)

    def __str__(self) -> str:
        return "\n".join(self._lines)
