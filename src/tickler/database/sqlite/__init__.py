"""SQLite connections."""
