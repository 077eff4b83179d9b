"""What this worker can deliver to: Tickler's own kinds of target, as far as their packages are installed."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from typing import Any

from tickler.clock import Clock
from tickler.deliver.missing_targets import EXTRAS
from tickler.distribution import install_command
from tickler.model.delivery import Deliverer
from tickler.model.target import HttpTarget, LambdaTarget, SqsTarget, Target
from tickler.records.contract import RecordStore
from tickler.webhooks.encryption import Encryption
from tickler.webhooks.signing_secrets import SecretCache, configured_secrets

log = logging.getLogger("tickler.deliver")


Wrap = Callable[[Deliverer[Any]], Deliverer[Any]]


def wrapped(deliverers: Mapping[type[Target], Deliverer[Any]], wraps: Sequence[Wrap]) -> dict[type[Target], Deliverer[Any]]:
    """All of them within what is put around them, the last outermost; one that serves several kinds stays one."""
    around = {id(deliverer): deliverer for deliverer in deliverers.values()}
    for wrap in wraps:
        around = {inmost: wrap(deliverer) for inmost, deliverer in around.items()}
    return {kind: around[id(deliverer)] for kind, deliverer in deliverers.items()}


def check_environment(environ: Mapping[str, str]) -> None:
    """What `own_deliverers` will read, before anything is opened: `InvalidInput` names the variable that does not read."""
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
    """Those whose packages are missing are left out: fires that go there are given back, for workers that have them."""

    def http() -> Deliverer[Any]:
        guard = import_module("tickler.deliver.address_guard").AddressGuard.from_environment(environ, allow_networks)
        cache = SecretCache(records, encryption, clock, environ)
        deliverer: Deliverer[Any] = import_module("tickler.deliver.targets.http").HttpDeliverer(
            guard, cache.secrets_of, encryption.decrypt_target, clock
        )
        return deliverer

    def sqs() -> Deliverer[Any]:
        allowed = import_module("tickler.deliver.targets.aws_http").AllowedArns.from_environment(environ)
        deliverer: Deliverer[Any] = import_module("tickler.deliver.targets.sqs").SqsDeliverer(allowed)
        return deliverer

    def aws_lambda() -> Deliverer[Any]:
        allowed = import_module("tickler.deliver.targets.aws_http").AllowedArns.from_environment(environ)
        deliverer: Deliverer[Any] = import_module("tickler.deliver.targets.aws_lambda").LambdaDeliverer(allowed)
        return deliverer

    makers: dict[type[Target], Callable[[], Deliverer[Any]]] = {HttpTarget: http, SqsTarget: sqs, LambdaTarget: aws_lambda}
    found: dict[type[Target], Deliverer[Any]] = {}
    for kind, make in makers.items():
        try:
            found[kind] = make()
        except ModuleNotFoundError as error:
            log.info(
                "nothing is delivered to %s here: the package %s is not installed: %s",
                kind.__name__,
                (error.name or "").partition(".")[0],
                install_command(EXTRAS[kind]),
            )
    return found
