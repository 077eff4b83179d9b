"""PostgreSQL connections."""
