"""What has to be told about an edition. It is noted in the transaction of the transition, and deleted when it was sent."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pricebook.model.head import Edition
from pricebook.model.table import pricebook
from tickler.table import Attr, Entity, Index, Key, attr

NoticeKind = Literal["approved", "withdrawn", "settled", "ended"]


class Notice(Entity, table=pricebook):
    """`at` is when the transition happened, and `edition` is as it was then. A later notice of the same kind replaces it.

    That some values of an edition end (`ended`) is noted ahead, once the edition is settled: `at` is when the next of them do.
    """

    store: Attr[str] = attr()
    number: Attr[int] = attr()
    kind: Attr[NoticeKind] = attr()
    at: Attr[datetime] = attr()
    edition: Attr[Edition]

    key = Key("STORE" / store, "!NOTICE" / number / kind)
    pending = Index("gsi2", "NOTICES", at / store / number / kind)
