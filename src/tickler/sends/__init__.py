"""SEND: one-off deliveries that are sent once for each owner and key."""

from tickler.sends.contract import SendStore
from tickler.sends.sends import Sends, Sent

__all__ = ["SendStore", "Sends", "Sent"]
