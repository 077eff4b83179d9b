"""The delivery policy of a schedule, as a value."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal, get_args

import msgspec
from msgspec.structs import force_setattr

from tickler.errors import InvalidSchedule
from tickler.model.duration import Duration, to_duration

Delivery = Literal["at-least-once", "at-most-once"]
Missed = Literal["latest", "skip", "all"]
Overlap = Literal["allow", "skip", "wait"]

MAX_DURATION = timedelta(days=366)
MAX_ATTEMPTS = 1_000
MAX_CATCHUP = 10_000
MAX_DELAYS = 100
DEFAULT_BACKOFF = tuple(timedelta(seconds=s) for s in (5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400))


class Policy(msgspec.Struct, frozen=True, kw_only=True, repr_omit_defaults=True):
    """How fires are delivered, retried and skipped. Durations may be passed as seconds, and are kept as timedeltas."""

    delivery: Delivery = "at-least-once"
    missed: Missed = "latest"
    overlap: Overlap = "allow"
    spread: timedelta = timedelta(0)  # each schedule is delayed by a fixed offset up to this, a hash of owner and key
    grace: timedelta = timedelta(seconds=60)  # missed="skip": fires up to this late are not skipped
    max_catchup: int = 100  # missed="all": the most instants that one claim returns
    attempts: int = 10
    timeout: timedelta = timedelta(seconds=30)
    backoff: tuple[timedelta, ...] = DEFAULT_BACKOFF  # longest waits before attempts 2, 3, …; the last repeats

    if TYPE_CHECKING:

        def __init__(
            self,
            *,
            delivery: Delivery = "at-least-once",
            missed: Missed = "latest",
            overlap: Overlap = "allow",
            spread: Duration = 0,
            grace: Duration = 60,
            max_catchup: int = 100,
            attempts: int = 10,
            timeout: Duration = 30,
            backoff: tuple[Duration, ...] | list[Duration] = DEFAULT_BACKOFF,
        ) -> None: ...

    def __post_init__(self) -> None:
        _one_of("delivery", self.delivery, get_args(Delivery))
        _one_of("missed", self.missed, get_args(Missed))
        _one_of("overlap", self.overlap, get_args(Overlap))
        for name in ("spread", "grace", "timeout"):
            force_setattr(self, name, _duration(name, getattr(self, name)))
        if not isinstance(self.backoff, tuple | list) or not 0 < len(self.backoff) <= MAX_DELAYS:
            raise InvalidSchedule("policy.backoff", f"give a list of 1 to {MAX_DELAYS} delays, such as [5, 300, 1800]")
        force_setattr(self, "backoff", tuple(_duration("backoff", delay) for delay in self.backoff))
        _whole("attempts", self.attempts, MAX_ATTEMPTS)
        _whole("max_catchup", self.max_catchup, MAX_CATCHUP)
        if not self.timeout:
            raise InvalidSchedule("policy.timeout", "is 0: give it some seconds, such as 30")
        if self.overlap != "allow" and self.delivery != "at-least-once":
            raise InvalidSchedule(
                "policy.overlap",
                f"{self.overlap!r} needs delivery='at-least-once': with at-most-once, nothing records what is still running",
            )


def policy_to_json(policy: Policy) -> dict[str, object]:
    """Return the fields that differ from the defaults, with durations in seconds."""
    differing = (name for name in policy.__struct_fields__ if getattr(policy, name) != getattr(DEFAULT_POLICY, name))
    return {name: _plain(getattr(policy, name)) for name in differing}


def default_fields() -> dict[str, object]:
    """Return the default of each field, with durations in seconds."""
    return {name: _plain(getattr(DEFAULT_POLICY, name)) for name in DEFAULT_POLICY.__struct_fields__}


def _plain(value: object) -> object:
    if isinstance(value, tuple):
        return [_plain(delay) for delay in value]
    if not isinstance(value, timedelta):
        return value
    seconds = value.total_seconds()
    return int(seconds) if seconds.is_integer() else seconds


def policy_from_json(fields: object) -> Policy:
    if not isinstance(fields, dict):
        raise InvalidSchedule("policy", f"is a {type(fields).__name__}: give an object such as {{'missed': 'skip'}}")
    unknown = sorted(str(name) for name in fields if name not in Policy.__struct_fields__)
    if unknown:
        raise InvalidSchedule(f"policy.{unknown[0]}", f"unknown field: use {', '.join(Policy.__struct_fields__)}")
    return Policy(**{name: _json_number(value) for name, value in fields.items()}) if fields else DEFAULT_POLICY


def _json_number(value: Any) -> Any:
    """Read 3.0 as 3: JSON does not distinguish them."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _one_of(name: str, value: object, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise InvalidSchedule(f"policy.{name}", f"{value!r} is not one of {', '.join(allowed)}")


def _whole(name: str, value: object, most: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
        raise InvalidSchedule(f"policy.{name}", f"{value!r} is not a whole number from 1 to {most}")


def _duration(name: str, value: object) -> timedelta:
    return to_duration(f"policy.{name}", value, MAX_DURATION, InvalidSchedule)


DEFAULT_POLICY = Policy()
