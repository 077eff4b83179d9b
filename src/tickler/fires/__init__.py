"""Fires, from their claim until they are delivered, dead or cancelled."""

from tickler.fires.contract import FireStore
from tickler.fires.fires import FirePage, Fires, HistoryPage
from tickler.model.fire import Claim, Entry, Fire, Settlement

__all__ = ["Claim", "Entry", "Fire", "FirePage", "FireStore", "Fires", "HistoryPage", "Settlement"]
