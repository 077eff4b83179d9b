"""The engine on SQLite."""
