"""What the SQLite and the PostgreSQL store share. Statements have `{schema}.` before tables, as PostgreSQL needs it."""
