"""What the tests under fire counted, in a line at the end of the run; in a thorough run, a line for each test as well."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pytest

PREFIX = "under fire: "


def fire_lines(reports: Iterable[pytest.TestReport], *, each: bool) -> Iterator[str]:
    """Counts are summed up over tests; of what ends in "ms" or "MB" the most counts. None where no such test ran."""
    total: dict[str, int] = {}
    for report in reports:
        counts = {name.removeprefix(PREFIX): int(number) for name, number in counted(report)}
        if counts and each:
            yield f"  {report.nodeid.rpartition('::')[2]}: {_shown(counts)}"
        for name, number in counts.items():
            total[name] = max(total.get(name, 0), number) if name.endswith(("ms", "MB")) else total.get(name, 0) + number
    if total:
        yield f"Under fire: {_shown(total)}"


def counted(report: pytest.TestReport) -> list[tuple[str, int]]:
    if report.when != "call":
        return []
    return [(name, int(str(number))) for name, number in report.user_properties if name.startswith(PREFIX)]


def _shown(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} {number:,}" for name, number in counts.items())
