"""`tickler copy`, run as people run it."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

import tickler
from tickler import Cron, IndexRow, PythonTarget, Schedule
from tickler.clock import SystemClock
from tickler.connect import opened_store
from tickler.database.progress import no_progress
from tickler.database.store_url import parse_url
from tickler.records.worker_status import WorkerReport, report
from tickler.transfer import copy as copying
from tickler.transfer.copy import Copy

from .preloaded import run_tickler

FROM, TO = "sqlite:///from.db", "sqlite:///to.db"


async def filled(folder: Path, schedules: int = 30) -> str:
    url = f"sqlite:///{folder}/from.db"
    async with tickler.connect(url) as t:
        await t.schedules.put_many(
            Schedule(owner="u1", key=f"k{n}", when="0 0 1 1 *", target=PythonTarget("works")) for n in range(schedules)
        )
        await t.index.upsert(IndexRow("u2", "row", Cron("0 9 * * *"), t.now_ms()))
        await t.trigger("u1", "k0")
        await t.fires.cancel((await t.trigger("u1", "k1")).id)
        await t.records.put("mine", "a", {"n": 1})
    return url


async def test_it_copies_everything_and_shows_counts_and_checksums(tmp_path: Path) -> None:
    await filled(tmp_path)
    done = run_tickler("copy", FROM, TO, folder=tmp_path, COLUMNS="120")
    assert done.returncode == 0, done.stderr
    rows = [re.split(r"\s{2,}", line) for line in done.stdout.splitlines()[1:-1]]
    assert [row[:3] + row[5:] for row in rows] == [
        ["records", "2", "2", "same"],  # a zone is among them
        ["schedules", "30", "30", "same"],
        ["rows without a schedule", "1", "1", "same"],
        ["fires", "1", "1", "same"],
        ["history", "1", "1", "same"],
    ]
    assert all(row[3] == row[4] != "0" * 12 for row in rows)
    assert "the copy is complete" in done.stdout
    async with tickler.connect(f"sqlite:///{tmp_path}/to.db") as t:
        assert len((await t.schedules.list(limit=100)).items) == 30
        assert (await t.records.list("mine"))[0].value == {"n": 1}


async def test_the_answer_is_one_line_of_json_on_demand(tmp_path: Path) -> None:
    await filled(tmp_path)
    done = run_tickler("copy", FROM, TO, "--json", folder=tmp_path, COLUMNS="20")
    assert (done.returncode, done.stdout.count("\n")) == (0, 1)
    answer = msgspec.json.decode(done.stdout)
    assert (answer["same"], answer["resumed"]) == (True, False)
    assert [each["part"] for each in answer["parts"]] == ["records", "schedules", "rows", "fires", "history"]
    assert all(each["from"] == each["to"] and len(each["from"]["checksum"]) == 32 for each in answer["parts"])


async def test_the_exit_code_is_1_when_they_differ_and_another_run_mends_it_if_told_to(tmp_path: Path) -> None:
    url = await filled(tmp_path)
    target = f"sqlite:///{tmp_path}/to.db"
    async with opened_store(url) as source, opened_store(target) as other:
        copy = Copy(source, other, parse_url(url).text, SystemClock().now_ms, no_progress)
        await copy.begin()
        await copy.run()  # and then the process ends, before it has compared them
    async with tickler.connect(target) as t:
        await t.schedules.pause("u1", "k7")
    done = run_tickler("copy", url, target, "--json", folder=tmp_path)
    answer = msgspec.json.decode(done.stdout)
    assert (done.returncode, answer["same"], answer["resumed"]) == (1, False, True)
    assert [each["part"] for each in answer["parts"] if not each["same"]] == ["schedules"]
    done = run_tickler("copy", url, target, folder=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert "schedule u1/k7 was changed in it" in done.stderr
    done = run_tickler("copy", url, target, "--into-existing", folder=tmp_path)
    assert (done.returncode, done.stdout.count("same")) == (0, len(copying.PARTS))


async def test_a_target_that_is_not_empty_is_refused(tmp_path: Path) -> None:
    url = await filled(tmp_path)
    assert run_tickler("copy", url, TO, folder=tmp_path).returncode == 0
    done = run_tickler("copy", url, TO, folder=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("tickler: the target is not empty: it has schedules")
    async with tickler.connect(f"sqlite:///{tmp_path}/to.db") as t:
        await t.schedules.put(Schedule(owner="u9", key="own", when="@daily"))
        await t.schedules.pause("u1", "k3")
    assert run_tickler("copy", url, TO, "--into-existing", folder=tmp_path).returncode == 0
    async with tickler.connect(f"sqlite:///{tmp_path}/to.db") as t:
        assert await t.schedules.get("u9", "own") is not None
        assert [each.state for each in (await t.schedules.list(limit=100)).items] == ["active"] * 31


async def test_workers_at_work_are_named_and_let_through_on_demand(tmp_path: Path) -> None:
    url = await filled(tmp_path)
    async with tickler.connect(url) as t:
        await report(t.store.records, WorkerReport(name="host:7", doing="working", started_at=1, seen_at=t.now_ms()))
    done = run_tickler("copy", url, TO, folder=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert "1 worker is running on the source, such as host:7" in done.stderr
    assert run_tickler("copy", url, TO, "--while-workers-run", folder=tmp_path).returncode == 0


async def test_a_store_is_not_copied_into_itself(tmp_path: Path) -> None:
    await filled(tmp_path)
    for again in (FROM, "sqlite:///./from.db"):
        done = run_tickler("copy", FROM, again, "--into-existing", folder=tmp_path)
        assert (done.returncode, done.stdout) == (1, "")
        assert "are the same store" in done.stderr


def test_a_source_that_is_not_there_is_named_and_nothing_is_made(tmp_path: Path) -> None:
    done = run_tickler("copy", FROM, TO, folder=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("tickler: sqlite:///from.db has no Tickler tables")
    assert list(tmp_path.iterdir()) == []
