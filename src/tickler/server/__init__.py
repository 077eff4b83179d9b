"""The service: an HTTP API, one resource a file, and the web page. `tickler serve` runs it."""
