"""How jobs are worked on."""

from __future__ import annotations

import time
from collections.abc import Callable

from msgspec import Struct

from pricebook.bulk.limits import BulkLimits
from pricebook.points import AtPoint, pass_on


class BulkSettings(Struct, frozen=True):
    """`seconds` is a clock that only goes forward."""

    limits: BulkLimits = BulkLimits()
    at_point: AtPoint = pass_on
    seconds: Callable[[], float] = time.monotonic
