"""Accounts on networks: connecting them by OAuth, and keeping their tokens valid."""
