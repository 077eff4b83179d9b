"""What the sentences of the offline drafter are made of. A frame can be used where all of its slots have a value.

What the slots mean is in `story.py`. Sentences start with a capital, or not, as the author writes: see `styling.py`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import msgspec

_SLOT = re.compile(r"\{(\w+)\}")


class Frame(msgspec.Struct, frozen=True):
    """One way to say it. Posts that follow each other take different angles."""

    angle: str
    text: str
    slots: frozenset[str]

    def filled(self, values: Mapping[str, str]) -> str:
        return _SLOT.sub(lambda found: values[found[1]], self.text)


def frames(**angles: Sequence[str]) -> tuple[Frame, ...]:
    return tuple(Frame(angle, text, frozenset(_SLOT.findall(text))) for angle, texts in angles.items() for text in texts)
