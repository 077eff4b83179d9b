"""Fires, from their claim until they are delivered, dead or cancelled."""

from tickler.fires.contract import ClaimRequest, FireStore, LeaseRequest
from tickler.fires.fires import FirePage, Fires, HistoryPage
from tickler.model.fire import Claim, Entry, Fire, Settlement

__all__ = [
    "Claim",
    "ClaimRequest",
    "Entry",
    "Fire",
    "FirePage",
    "FireStore",
    "Fires",
    "HistoryPage",
    "LeaseRequest",
    "Settlement",
]
