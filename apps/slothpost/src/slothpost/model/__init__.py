"""What slothpost keeps: one table, and the entities in it."""

from slothpost.model.account import Account
from slothpost.model.activity import Activity, ActivityKind, Sighting, Source
from slothpost.model.api_token import IssuedToken
from slothpost.model.channel import NETWORK_NAMES, Channel, ChannelName
from slothpost.model.connection import Connection, VercelClaim, VercelInstallation
from slothpost.model.notice import Notice
from slothpost.model.post import Post, PostState, Transition
from slothpost.model.product import DrafterName, Product, Voice
from slothpost.model.slot import Slot
from slothpost.model.table import slothpost
from slothpost.model.unrouted import Unrouted
from slothpost.model.user import User

__all__ = [
    "NETWORK_NAMES",
    "Account",
    "Activity",
    "ActivityKind",
    "Channel",
    "ChannelName",
    "Connection",
    "DrafterName",
    "IssuedToken",
    "Notice",
    "Post",
    "PostState",
    "Product",
    "Sighting",
    "Slot",
    "Source",
    "Transition",
    "Unrouted",
    "User",
    "VercelClaim",
    "VercelInstallation",
    "Voice",
    "slothpost",
]
