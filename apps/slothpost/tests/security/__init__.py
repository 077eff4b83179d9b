"""Attacks: as a hostile user, sender of webhooks, language model, network, or thief of the database."""
