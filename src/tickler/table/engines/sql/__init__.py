"""What the engines on SQLite and PostgreSQL share."""
