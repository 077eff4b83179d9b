"""One folder a backend, each with the same small files: schema, schedules, index, records."""
