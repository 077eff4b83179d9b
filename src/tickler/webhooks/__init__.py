"""Signed webhooks: signatures, envelopes, secrets and encryption, for senders and receivers."""
