"""Settling: from a change in the table to its schedule, and what is done when that fires. Prices do not wait for any of it."""

from pricebook.settling.options import SettlingOptions
from pricebook.settling.settling import Settling
from pricebook.settling.store_settlement import ChangeSetStores, StoreSettlement

__all__ = ["ChangeSetStores", "Settling", "SettlingOptions", "StoreSettlement"]
