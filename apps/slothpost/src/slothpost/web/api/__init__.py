"""The JSON API under `/api`: what the pages do, for scripts. Described by `/api/openapi.json`.

`operation.py` says what an operation is; one file for each resource has its operations and the types of their bodies. `router.py`
serves them and `openapi.py` describes them, so that the description cannot differ from what is served.
"""

from slothpost.web.api.router import API_ROUTES

__all__ = ["API_ROUTES"]
