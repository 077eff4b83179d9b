"""Events: prices were approved, withdrawn, or have changed. Signed, in versioned types, sent once each."""

from pricebook.events.events import Events, recorded_by
from pricebook.events.receiver import Receiver
from pricebook.events.types import LegacyPriceUpdated, PricesApproved, PricesChanged, PricesWithdrawn

__all__ = [
    "Events",
    "LegacyPriceUpdated",
    "PricesApproved",
    "PricesChanged",
    "PricesWithdrawn",
    "Receiver",
    "recorded_by",
]
