"""What pages and APIs of applications share, as plain ASGI for every framework.

`Web` is all of it for one application: `protect` is the middleware, with the parts below in the order that matters.

| part | what it does |
|---|---|
| `Sessions` | signed cookies that name a subject; signed out everywhere |
| `Forms` | tokens of forms, against forms that other sites send |
| `OneTimeLinks` | codes that work once and expire, to sign in or to invite |
| `BearerTokens` | tokens for programs, with scopes and attributes of your own |
| `RateLimit` | a limit of your own, such as on links sent to one address |
| `Assets` | a package's static files, under addresses that browsers cache for ever |
| `Visitor` | who sends a request |
| `Refused` | an error with a status, answered as problem+json or by your page |
| `serve` | answers requests with uvicorn, beside a worker, and drains both at a signal; `listen` and `run` begin it |
| `ensure_key` | `TICKLER_KEY` from a file beside an SQLite file; `make_private` lets nobody else read that one |
"""

from tickler.access.bearer_tokens import BearerToken, BearerTokens, TokenPage
from tickler.process.event_loop import run
from tickler.web.application import Web
from tickler.web.assets import Assets
from tickler.web.forms import FormFields, Forms
from tickler.web.local_store import ensure_key, make_private, sqlite_file
from tickler.web.one_time_links import OneTimeLinks
from tickler.web.problems import Answer, Refused
from tickler.web.rate_limit import RateLimit
from tickler.web.redirects import local_path
from tickler.web.serving import listen, serve
from tickler.web.sessions import Session, Sessions
from tickler.web.settings import WebSettings
from tickler.web.visitor import Visitor

__all__ = [
    "Answer",
    "Assets",
    "BearerToken",
    "BearerTokens",
    "FormFields",
    "Forms",
    "OneTimeLinks",
    "RateLimit",
    "Refused",
    "Session",
    "Sessions",
    "TokenPage",
    "Visitor",
    "Web",
    "WebSettings",
    "ensure_key",
    "listen",
    "local_path",
    "make_private",
    "run",
    "serve",
    "sqlite_file",
]
