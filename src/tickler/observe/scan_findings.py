"""Findings of `tickler doctor --scan`: items that no index finds, grouped, and listed by name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tickler.observe.diagnosis import Diagnosis, Finding, Severity, worst_first
from tickler.observe.human_format import some
from tickler.stores.optional import Fault, MalformedItem

SEVERITIES: dict[Fault, Severity] = {"unfound": "critical", "set-aside": "warning", "not-sparse": "warning"}


class Scan(Diagnosis, frozen=True, kw_only=True):
    """A diagnosis that also lists every item, since each has to be repaired by hand."""

    misfits: list[MalformedItem]


def diagnosed(misfits: Iterable[MalformedItem], at: int) -> Scan:
    """Group items with the same fault into one finding."""
    found = list(misfits)
    alike: dict[tuple[Fault, str, str], list[MalformedItem]] = {}
    for misfit in found:
        reason = "" if misfit.fault == "set-aside" else misfit.reason  # differs from item to item
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
        return some(number, "item cannot be read and was set aside", "items cannot be read and were set aside")
    return f"{misfit.attribute} {misfit.reason}"
