"""What is wrong with items that no index finds: findings like the doctor's, and all of those items by name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tickler.observe.diagnosis import Diagnosis, Finding, Severity, worst_first
from tickler.observe.human_format import some
from tickler.stores.optional import Fault, MalformedItem

SEVERITIES: dict[Fault, Severity] = {"unfound": "critical", "set-aside": "warning", "not-sparse": "warning"}


class Scan(Diagnosis, frozen=True, kw_only=True):
    """A diagnosis whose examples are not all: whoever mends items has to know each."""

    misfits: list[MalformedItem]


def diagnosed(misfits: Iterable[MalformedItem], at: int) -> Scan:
    """One finding for all that are at fault in the same way."""
    found = list(misfits)
    alike: dict[tuple[Fault, str, str], list[MalformedItem]] = {}
    for misfit in found:
        reason = "" if misfit.fault == "set-aside" else misfit.reason  # which each of them has its own of
        alike.setdefault((misfit.fault, misfit.attribute, reason), []).append(misfit)
    return Scan(at=at, deep=True, findings=worst_first([_finding(group) for group in alike.values()]), misfits=found)


def line(misfit: MalformedItem) -> str:
    return f"{misfit.item}: {misfit.attribute} {misfit.reason}"


def _finding(alike: Sequence[MalformedItem]) -> Finding:
    first, number = alike[0], sum(misfit.count for misfit in alike)
    return Finding(
        check=first.fault,
        severity=SEVERITIES[first.fault],
        count=number,
        says=_says(first, number),
        example=line(first) if first.fault == "set-aside" else first.item,
        remedy=first.remedy,
    )


def _says(misfit: MalformedItem, number: int) -> str:
    if misfit.fault == "unfound":
        return f"{some(number, 'item is', 'items are')} left out of an index: {misfit.attribute} {misfit.reason}"
    if misfit.fault == "set-aside":
        return some(number, "item does not read, and was taken out of the index", "items do not read, and were taken out of it")
    return f"{misfit.attribute} {misfit.reason}"
