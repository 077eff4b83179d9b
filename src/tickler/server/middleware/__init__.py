"""The layers before a handler: HTTP protocol, limits, authentication, idempotency."""
