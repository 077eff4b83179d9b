"""What a drafter is: it turns activity into a text, or says that it could not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Protocol

import msgspec

from slothpost.model import Activity, ChannelName, DrafterName, Product


class Rejected(msgspec.Struct, frozen=True):
    """An earlier answer to the same request that could not be used, and why."""

    answer: str
    reasons: tuple[str, ...]


class DraftRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What to write about, for which channel, and how.

    `activities` are worth telling, the most worth first, and name nothing that must stay private. `recent` are the latest posts
    of the channel with the angles that they took, newest first. `hint` is what the author asked for when regenerating.
    `private_names` must not occur in the text, whatever it is made of.
    """

    product: Product
    channel: ChannelName
    activities: Sequence[Activity]
    recent: Sequence[tuple[str, str]] = ()  # text, angle
    hint: str = ""
    seed: str  # the same seed and the same activity give the same draft
    private_names: Sequence[str] = ()
    rejected: Rejected | None = None  # set in the second round


class Draft(msgspec.Struct, frozen=True, kw_only=True):
    """A text that the channel takes. `used` are the ids of the activities that it tells of."""

    text: str
    used: tuple[str, ...]
    drafter: DrafterName
    angle: str = ""
    note: str = ""  # why another drafter stepped in


class DrafterFailed(Exception):
    """The drafter has no usable text; `str` of it says why, for the card.

    `answer` is what it wrote, if asking once more with the reason may help.
    """

    def __init__(self, reason: str, *, answer: str | None = None) -> None:
        super().__init__(reason)
        self.answer = answer


class Drafter(Protocol):
    """Writes a draft, or raises `DrafterFailed`. It never blocks for longer than its own timeout."""

    name: ClassVar[DrafterName]

    async def draft(self, request: DraftRequest) -> Draft: ...
