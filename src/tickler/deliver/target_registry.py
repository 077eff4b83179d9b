"""The targets that a worker can deliver to: Tickler's own kinds whose packages are installed, and those of the caller.

To add a kind:

1. `model/target.py`: its struct, `OWN_KINDS` and `_EXAMPLES`; the union in `model/schedule_json.py`; the name in `__init__.py`.
2. `targets/`: its deliverer, which `own_deliverers` makes; its extra in `missing_targets.EXTRAS`; `attempt.host_of` says what a
   limit per host counts; `payload_memory._SENT_AS_JSON` has it if it passes the stored JSON on.
3. `server/openapi/types.py`: its body and its patch; `observe/tracing.py`: its name in spans.

A kind of your own outside of Tickler needs none of that: see `Tickler.deliver_with`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib import import_module
from typing import Any

from tickler.clock import Clock
from tickler.deliver.missing_targets import EXTRAS, missing_target
from tickler.deliver.targets.python import Handlers
from tickler.distribution import install_command
from tickler.model.delivery import Deliverer, Outcome
from tickler.model.fire import Claim
from tickler.model.target import HttpTarget, LambdaTarget, PythonTarget, SqsTarget, Target, label_of
from tickler.records.contract import RecordStore
from tickler.webhooks.encryption import Encryption
from tickler.webhooks.signing_secrets import SecretCache, configured_secrets

MAX_LABELS = 500  # that a worker's report names

log = logging.getLogger("tickler.deliver.targets")


Wrap = Callable[[Deliverer[Any]], Deliverer[Any]]


class TargetRegistry:
    """The deliverers of one worker, by kind of target. `handlers` is None where the caller delivers to Python targets itself."""

    def __init__(self, deliverers: Mapping[type[Target], Deliverer[Any]], handlers: Handlers | None = None) -> None:
        self.deliverers = deliverers
        self._handlers = handlers
        self._opened: list[Deliverer[Any]] = []

    async def open(self) -> None:
        """Open each deliverer once. If one fails, close the others and raise."""
        for deliverer in {id(each): each for each in self.deliverers.values()}.values():
            try:
                await deliverer.open()
            except BaseException:
                await self.close()
                raise
            self._opened.append(deliverer)

    async def close(self) -> None:
        while self._opened:
            deliverer = self._opened.pop()
            try:
                await deliverer.close()
            except Exception:
                log.exception("a %s did not close", type(deliverer).__name__)

    def labels(self) -> list[str]:
        """Return the labels of all targets that can be delivered to; too many handlers are one label, that of their kind."""
        kinds = sorted(label_of(kind) for kind in self.deliverers)
        if self._handlers is None or len(self._handlers.names) > MAX_LABELS:
            return kinds
        kinds.remove(label_of(PythonTarget))
        return sorted([*kinds, *(label_of(PythonTarget(name)) for name in self._handlers.names)])

    def missing(self, claim: Claim) -> Outcome | None:
        """Return the outcome of a claim whose handler or packages this worker lacks; None if it has them."""
        target = claim.schedule.target
        if isinstance(target, PythonTarget) and self._handlers is not None:
            has_it = target.handler in self._handlers
        else:
            has_it = type(target) in self.deliverers or (target is None and not claim.schedule.newer)
        return None if has_it else missing_target(target)


def wrapped(deliverers: Mapping[type[Target], Deliverer[Any]], wraps: Sequence[Wrap]) -> dict[type[Target], Deliverer[Any]]:
    """Wrap every deliverer, the last wrap outermost. A deliverer of several kinds is wrapped once."""
    around = {id(deliverer): deliverer for deliverer in deliverers.values()}
    for wrap in wraps:
        around = {inmost: wrap(deliverer) for inmost, deliverer in around.items()}
    return {kind: around[id(deliverer)] for kind, deliverer in deliverers.items()}


def check_environment(environ: Mapping[str, str]) -> None:
    """Check what `own_deliverers` will read, before anything is opened. `InvalidInput` names the invalid variable."""
    configured_secrets(environ)
    for module, reader in (
        ("tickler.deliver.address_guard", "AddressGuard"),
        ("tickler.deliver.targets.aws_http", "AllowedArns"),
    ):
        with suppress(ModuleNotFoundError):
            getattr(import_module(module), reader).from_environment(environ)


def own_deliverers(
    records: RecordStore, encryption: Encryption, clock: Clock, environ: Mapping[str, str], allow_networks: tuple[str, ...]
) -> dict[type[Target], Deliverer[Any]]:
    """Return the deliverers whose packages are installed. Fires for the others are released, for workers that have them."""

    def http() -> Deliverer[Any]:
        guard = import_module("tickler.deliver.address_guard").AddressGuard.from_environment(environ, allow_networks)
        cache = SecretCache(records, encryption, clock, environ)
        deliverer: Deliverer[Any] = import_module("tickler.deliver.targets.http").HttpDeliverer(
            guard, cache.secrets_of, encryption.decrypt_target, clock
        )
        return deliverer

    def aws(module: str, name: str) -> Deliverer[Any]:
        allowed = import_module("tickler.deliver.targets.aws_http").AllowedArns.from_environment(environ)
        deliverer: Deliverer[Any] = getattr(import_module(f"tickler.deliver.targets.{module}"), name)(allowed)
        return deliverer

    makers: dict[type[Target], Callable[[], Deliverer[Any]]] = {
        HttpTarget: http,
        SqsTarget: lambda: aws("sqs", "SqsDeliverer"),
        LambdaTarget: lambda: aws("aws_lambda", "LambdaDeliverer"),
    }
    found: dict[type[Target], Deliverer[Any]] = {}
    for kind, make in makers.items():
        try:
            found[kind] = make()
        except ModuleNotFoundError as error:
            _log_missing(kind, (error.name or "").partition(".")[0])
    return found


@cache
def _log_missing(kind: type[Target], package: str) -> None:
    """Say once in a process what its workers lack: `tick` makes a worker for each beat."""
    remedy = install_command(EXTRAS[kind])
    log.info("this worker does not deliver to %s: the package %s is not installed: %s", kind.__name__, package, remedy)
