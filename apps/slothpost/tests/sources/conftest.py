"""Tests here use the sources as a whole, with local stand-ins."""

from sources.place_fixtures import anywhere, clock, key, place

__all__ = ["anywhere", "clock", "key", "place"]
