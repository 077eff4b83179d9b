"""Change sets in the schema: their types, what can be asked about them, and how they are changed."""
