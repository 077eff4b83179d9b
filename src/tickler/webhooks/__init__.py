"""Signed webhooks: signatures, envelopes, secrets and encryption, for senders and receivers."""

from tickler.webhooks.key_ring import new_key
from tickler.webhooks.signature import new_secret
from tickler.webhooks.verify import Received, verify

__all__ = ["Received", "new_key", "new_secret", "verify"]
