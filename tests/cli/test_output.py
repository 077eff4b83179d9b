"""How commands speak: on a terminal, in a pipe, and of what strangers wrote."""

from __future__ import annotations

import io
import re

import pytest
from rich.console import Console

from tickler import Cron
from tickler.cli.output import show_table, visible
from tickler.cli.progress import progress_lines
from tickler.cli.rendering import show_fires, show_schedules
from tickler.model.fire import Entry, Fire, Health
from tickler.model.schedule import StoredSchedule
from tickler.table import Attr, Entity, Key, Table, attr, progress_bar

ROWS = [["u1", "digest", "active", "2035-01-01 09:00:00"], ["日本", "x" * 60, "paused", ""]]
COLUMNS = ["owner", "key", "state", "due (UTC)"]


def terminal(width: int) -> Console:
    return Console(file=io.StringIO(), force_terminal=True, width=width, color_system="standard", legacy_windows=False)


def written(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def without_colours(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def test_on_a_terminal_a_table_fits_and_loses_nothing() -> None:
    console = terminal(60)
    show_table(COLUMNS, ROWS, unwrapped=("state", "due (UTC)"), console=console)
    text = without_colours(written(console))
    assert all(len(line) <= 60 for line in text.splitlines())
    assert "2035-01-01 09:00:00" in text
    assert text.count("x") == 60
    assert "\x1b[32mactive" in written(console)


def test_in_a_pipe_a_row_is_a_line_without_colours_or_boxes(capsys: pytest.CaptureFixture[str]) -> None:
    show_table(COLUMNS, ROWS)
    assert capsys.readouterr().out.splitlines() == [
        f"owner  key{' ' * 57}  state   due (UTC)",
        f"u1     digest{' ' * 54}  active  2035-01-01 09:00:00",
        f"日本   {'x' * 60}  paused",
    ]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain ü 日本", "plain ü 日本"),
        ("\x1b[2Jgone", "\\x1b[2Jgone"),
        ("two\nlines\r", "two\\nlines\\r"),
        ("\x9b31m", "\\x9b31m"),
        ("\u202etxt.exe", "\\u202etxt.exe"),
        ("\udcff", "\\udcff"),
        ("[red]not markup[/red]", "[red]not markup[/red]"),
    ],
)
def test_what_a_terminal_would_obey_is_written_out(text: str, shown: str) -> None:
    assert visible(text) == shown
    console = terminal(80)
    show_table(["text"], [[text]], console=console)
    assert shown in without_colours(written(console))


def test_a_fire_takes_two_lines_on_a_narrow_terminal() -> None:
    fire = Fire(
        id="fire_" + "0" * 32, owner="u1", key="k", nominal_at=10**12, opened_at=10**12, state="dead", attempt=3, reason="gone"
    )
    for width, lines in ((80, 2), (160, 2)):  # with its head, in a wide one
        console = terminal(width)
        show_fires([fire], console)
        text = without_colours(written(console))
        assert len(text.strip().splitlines()) == lines
        assert f"{fire.id}  u1" in text
        assert "dead after attempt 3: gone" in text


def test_a_schedule_takes_two_lines_on_a_narrow_terminal() -> None:
    schedule = StoredSchedule(
        owner="u1",
        key="digest",
        when=Cron("0 9 * * tue", tz="Europe/Paris"),
        state="active",
        next_fire_at=10**12,
        version=1,
        created_at=1,
        updated_at=1,
    )
    entry = Entry(owner="u1", key="digest", nominal_at=10**12, at=10**12, happened="failed")
    failing = {schedule.id: Health(entry, failing=True)}
    for width in (40, 109):
        console = terminal(width)
        show_schedules([schedule], {schedule.id: Health()}, console)
        show_schedules([schedule], failing, console)
        assert written(console).splitlines() == [
            "u1/digest  active, due 2001-09-09 01:46:40 UTC",
            "  0 9 * * tue in Europe/Paris",
            "u1/digest  failing, due 2001-09-09 01:46:40 UTC",
            "  0 9 * * tue in Europe/Paris, failed 2001-09-09 01:46:40 UTC",
        ]
    console = terminal(110)
    show_schedules([schedule], failing, console)
    assert len(without_colours(written(console)).strip().splitlines()) == 2, "with its head"
    assert "owner  key " in without_colours(written(console))


def test_progress_lines_are_printed_at_once_without_a_terminal_and_after_the_bar_on_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said: list[str] = []
    with progress_lines("migrating", said.append) as on_progress:
        on_progress("half", 1, 2)
        assert said == ["half"]
    console = terminal(80)
    for module in ("tickler.cli.progress", "tickler.database.progress_bar"):
        monkeypatch.setattr(f"{module}.Console", lambda **how: console)
    with progress_lines("migrating", said.append) as on_progress:
        on_progress("[all] of it", 2, 2)
        assert said == ["half"]
    assert said == ["half", "[all] of it"]
    assert "migrating" in written(console)
    assert "[all] of it" in written(console)


async def test_a_progress_bar_shows_how_far_a_load_is(monkeypatch: pytest.MonkeyPatch) -> None:
    shop = Table("shop")

    class Order(Entity, table=shop):
        id: Attr[str] = attr()
        key = Key("ORDER" / id, "ORDER")

    console = terminal(80)
    monkeypatch.setattr("tickler.database.progress_bar.Console", lambda **how: console)
    async with shop.connect("sqlite://") as db:
        with progress_bar("loading") as on_progress:
            await db.load([Order(id=str(n)) for n in range(1_200)], on_progress=on_progress)
        with progress_bar("loading") as on_progress:
            await db.load((Order(id=f"more{n}") for n in range(1_300)), on_progress=on_progress)
    shown = without_colours(written(console))
    assert "100%" in shown
    assert "1,300" in shown


def test_a_progress_bar_is_shown_on_a_terminal_only(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_bar("importing") as on_progress:
        on_progress("importing", 5, 10)
    assert capsys.readouterr() == ("", "")
