"""The books of a run: what should have happened, what arrived, and what the history says; and whether they agree."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from tickler import Tickler
from tickler.fires import Entry
from tickler.model.fire import fire_id
from under_fire.sink import Arrival
from under_fire.summary import PREFIX

RecordProperty = Callable[[str, object], None]


class Due(NamedTuple):
    """An occurrence that a test expects, worked out by itself."""

    owner: str
    key: str
    nominal_at: int

    @property
    def fire_id(self) -> str:
        return fire_id(*self)


Attempt = tuple[str, int]


class Accounts:
    """Of the occurrences in `due`, after everything has ended."""

    def __init__(self, due: Iterable[Due], arrivals: Iterable[Arrival], entries: Iterable[Entry]) -> None:
        self.due = {each.fire_id: each for each in due}
        self.arrivals: dict[str, list[Arrival]] = defaultdict(list)
        for arrival in arrivals:
            if arrival.id in self.due:
                self.arrivals[arrival.id].append(arrival)
        self.entries: dict[Attempt, list[Entry]] = defaultdict(list)
        for entry in entries:
            if entry.fire_id in self.due:
                self.entries[entry.fire_id, entry.attempt].append(entry)

    @property
    def missing(self) -> set[str]:
        """Fires that never arrived."""
        return self.due.keys() - self.arrivals.keys()

    @property
    def duplicates(self) -> int:
        return sum(len(arrivals) - 1 for arrivals in self.arrivals.values())

    def number(self, happened: str) -> int:
        return sum(entry.happened == happened for entries in self.entries.values() for entry in entries)

    def failed(self, id: str) -> bool:
        """Whether the history has a failure of this fire."""
        return any(entry.happened == "failed" for (of, _), entries in self.entries.items() for entry in entries if of == id)

    def check_arrivals_against_history(self) -> None:
        """The two were written by different processes, and tell the same."""
        for id, arrivals in self.arrivals.items():
            due = self.due[id]
            assert len({arrival.attempt for arrival in arrivals}) == len(arrivals), f"twice: {arrivals}"
            assert all(arrival.nominal_at == due.nominal_at for arrival in arrivals), arrivals
        answered = {(arrival.id, arrival.attempt): arrival.status for of in self.arrivals.values() for arrival in of}
        for attempt, entries in self.entries.items():
            for entry in entries:
                if entry.happened == "delivered":
                    assert answered.get(attempt) == 200, f"{entry}; the sink: {answered.get(attempt)}"
                if entry.happened == "failed" and entry.status:
                    assert answered.get(attempt) == entry.status, f"{entry}; the sink: {answered.get(attempt)}"

    def check_every_repetition_has_its_reason(self) -> None:
        """Where an attempt arrived that was not the first, each before it failed, got no answer, or expired with its worker."""
        for id, arrivals in self.arrivals.items():
            for arrival in arrivals:
                for before in range(1, arrival.attempt):
                    happened = {entry.happened for entry in self.entries.get((id, before), [])}
                    assert happened & {"failed", "expired"}, f"{arrival}, though attempt {before} has only {happened}"

    def check_all_delivered(self) -> None:
        """Every occurrence arrived, and was recorded as delivered, once unless its worker was thought to be gone."""
        assert not self.missing, f"{len(self.missing)} never arrived: {[self.due[id] for id in self.missing][:5]}"
        happened: dict[str, Counter[str]] = defaultdict(Counter)
        for (id, _), entries in self.entries.items():
            happened[id].update(entry.happened for entry in entries)
        for id, due in self.due.items():
            counts = happened[id]
            assert 1 <= counts["delivered"] <= 1 + counts["expired"], f"{due}: {counts}"
            assert not counts["skipped"], f"{due}: {counts}"
            assert not counts["cancelled"], f"{due}: {counts}"

    def statuses(self) -> Counter[int]:
        """How many attempts the sink answered with what; 0 for those that it let hang."""
        return Counter(arrival.status for of in self.arrivals.values() for arrival in of)


async def all_entries(tickler: Tickler, due: Iterable[Due]) -> list[Entry]:
    """The whole history of the schedules of `due`, page by page."""
    entries: list[Entry] = []
    for owner, key in sorted({(each.owner, each.key) for each in due}):
        after = None
        while True:
            page = await tickler.fires.history(owner, key, after=after)
            entries += page.items
            after = page.next
            if after is None:
                break
    return entries


def tell(record_property: RecordProperty, counts: Mapping[str, int]) -> None:
    """For the end of the run, where the counts of all tests are summed up."""
    for name, number in counts.items():
        record_property(PREFIX + name, number)
