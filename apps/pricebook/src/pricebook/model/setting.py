"""What is kept once for the whole table, such as the key that signs cursors."""

from __future__ import annotations

from pricebook.model.table import pricebook
from tickler.table import Attr, Entity, Key, attr


class Setting(Entity, table=pricebook):
    name: Attr[str] = attr()
    value: Attr[bytes]

    key = Key("SETTING" / name, "SETTING")
