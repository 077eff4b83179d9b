"""The API, described as OpenAPI 3.1."""
