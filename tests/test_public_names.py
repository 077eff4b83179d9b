"""What other people's code may rely on: names, the tree of errors, and how little `import tickler` brings in."""

from __future__ import annotations

import os
import pickle
import re
import subprocess
import sys
from importlib import import_module
from tempfile import TemporaryDirectory

import pytest

import tickler
import tickler.testing
from tickler import errors
from tickler.errors import TicklerError

PUBLIC = {
    "At",
    "Clock",
    "Cron",
    "Deliverer",
    "Delivery",
    "Every",
    "GiveUp",
    "HttpTarget",
    "IndexRow",
    "InvalidInput",
    "InvalidSchedule",
    "InvalidSignature",
    "LambdaTarget",
    "ManualClock",
    "NeverFires",
    "Outcome",
    "Policy",
    "PythonTarget",
    "Received",
    "RetryLater",
    "RunOptions",
    "Schedule",
    "ScheduleNotFound",
    "SqsTarget",
    "StoreUnavailable",
    "StoredSchedule",
    "Target",
    "Tickler",
    "TicklerError",
    "VersionConflict",
    "Weekly",
    "When",
    "__version__",
    "connect",
    "connect_sync",
    "new_key",
    "new_secret",
    "parse_when",
    "verify",
}
OF_PACKAGES = {
    "tickler.deliver": {"RunOptions", "Summary"},
    "tickler.dynamodb": {"DueItem", "DynamoIndex"},
    "tickler.fires": {"Claim", "Entry", "Fire", "FirePage", "FireStore", "Fires", "HistoryPage", "Settlement"},
    "tickler.index": {"Index", "IndexRow", "ScheduleIndex", "SetAside"},
    "tickler.observe": {"Diagnosis", "Finding", "Forecast", "Why"},
    "tickler.records": {"Record", "RecordStore", "Records"},
    "tickler.schedules": {"Declared", "Page", "ScheduleStore", "Schedules"},
    "tickler.sends": {"SendStore", "Sends", "Sent"},
    "tickler.table": {
        "MISSING",
        "Attr",
        "Change",
        "Condition",
        "Consumer",
        "Entity",
        "Index",
        "ItemChange",
        "ItemId",
        "Key",
        "Missing",
        "OpenTable",
        "Page",
        "Part",
        "Path",
        "Table",
        "Transaction",
        "attr",
        "changed",
        "created",
        "entered",
        "evolve",
        "left",
        "progress_bar",
        "removed",
    },
    "tickler.table.schema": {"Advice", "Answer", "Finding", "Schema", "html_page"},
    "tickler.web": {
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
    },
    "tickler.webhooks": {"Received", "new_key", "new_secret", "verify"},
}
FOR_TESTS = {
    "ChaosEngine",
    "ContentsContract",
    "ExpiredCountContract",
    "FireStoreContract",
    "ManualClock",
    "OrphanContract",
    "OwnerRowsContract",
    "Played",
    "RecordStoreContract",
    "ScheduleIndexContract",
    "ScheduleStoreContract",
    "SendStoreContract",
    "StoreContract",
    "StreamContract",
    "TableContract",
    "play",
}
NOT_NEEDED = (
    "aiohttp", "asyncpg", "botocore", "cryptography", "typer", "rich", "pytest", "litestar", "jinja2", "prometheus_client",
    "opentelemetry", "uvicorn", "starlette",
)  # fmt: skip

DRAWN = re.compile(r"(?P<branches>[│├└─ ]*)(?P<name>[A-Z]\w+)  .*?(?:\(also an? (?P<also>\w+)\))?")

ERRORS: list[TicklerError] = [
    errors.TicklerError("x"),
    errors.InvalidInput("x"),
    errors.InvalidWhen("minute", "61 * * * *", "is not a minute"),
    errors.UnknownTimezone("Mars/Olympus_Mons", "no such zone"),
    errors.InvalidSchedule("payload", "is too large", 3),
    errors.NeverFires("u1", "digest", "it is over", 3),
    errors.ManagedRow("u1", "digest"),
    errors.InvalidSignature("x", "y"),
    errors.ScheduleNotFound("u1", "digest"),
    errors.FireNotFound("fire_1", "it is not dead"),
    errors.DecryptionFailed("calendar token of u1", "no key decrypts it"),
    errors.InvalidItem("Order", "status is not one of its values"),
    errors.InvalidCursor("the cursor is not one of ours"),
    errors.ItemNotFound("Order", "CUSTOMER#c1", "ORDER#o1"),
    errors.ConsumerNotFound("mailer", "shop", ["searcher"]),
    errors.ChangeNotFound("17"),
    errors.ConditionFailed("Order('CUSTOMER#c1', 'ORDER#o1')", "Order.status == 'pending'", None),
    errors.TransactionConflict("u1/digest"),
    errors.SendConflict("u1", "welcome", "is a schedule", "fire_1"),
    errors.VersionConflict("u1/digest", 1, 2),
    errors.StoreUnavailable("x"),
    errors.PartlyWritten("dynamodb://t", 25, 100, errors.StoreUnavailable("x")),
    errors.SchemaError("x"),
    errors.SchemaMissing("sqlite://", "shop"),
    errors.SchemaMismatch("dynamodb://t", "the table has no index 'due'", "due"),
    errors.SchemaOutdated("sqlite://", 1, 2),
    errors.SchemaTooNew("sqlite://", 3, 1),
    errors.AddressRefused("10.0.0.1 is private"),
    errors.WorkerUnfit(["Mars/Olympus_Mons"]),
    errors.GiveUp("x"),
]


def drawn_tree() -> tuple[dict[str, str | None], dict[str, str]]:
    """Each error's parent, and what else it is, as the docstring of `errors` draws them."""
    parents: dict[str, str | None] = {}
    others: dict[str, str] = {}
    path: list[str] = []
    for line in (errors.__doc__ or "").splitlines():
        match = DRAWN.fullmatch(line) or re.fullmatch(r"(?P<branches>)(?P<name>TicklerError)(?P<also>x)?", line)
        if match is None:
            continue
        depth, name = len(match["branches"]) // 4, match["name"]
        del path[depth:]
        parents[name] = path[-1] if path else None
        path.append(name)
        if match["also"]:
            others[name] = match["also"]
    return parents, others


def real_errors() -> dict[str, type[TicklerError]]:
    found = {
        name: value for name, value in vars(errors).items() if isinstance(value, type) and value.__module__ == errors.__name__
    }
    assert all(issubclass(error, TicklerError) for error in found.values()), "errors.py has one tree"
    return found


def test_the_public_names_are_exactly_these() -> None:
    assert set(tickler.__all__) == PUBLIC
    assert len(tickler.__all__) == len(PUBLIC)
    assert tickler.__all__ == sorted(tickler.__all__)


def test_what_testing_offers_is_exactly_this() -> None:
    assert set(tickler.testing.__all__) == FOR_TESTS


@pytest.mark.parametrize("module", [tickler, tickler.testing], ids=lambda module: module.__name__)
def test_every_public_name_is_there_and_documented(module: object) -> None:
    for name in module.__all__:  # type: ignore[attr-defined]  # both have it
        value = getattr(module, name)
        assert isinstance(value, str) or value.__doc__, f"{name} has no docstring"


def test_the_tree_of_errors_is_the_one_that_is_drawn() -> None:
    parents, _ = drawn_tree()
    real = {
        name: next((base.__name__ for base in error.__bases__ if issubclass(base, TicklerError)), None)
        for name, error in real_errors().items()
    }
    assert parents == real


def test_what_else_an_error_is_stands_in_the_drawing() -> None:
    _, others = drawn_tree()
    real = {
        name: base.__name__
        for name, error in real_errors().items()
        for base in error.__bases__
        if not issubclass(base, TicklerError) and base is not Exception
    }
    assert others == real


@pytest.mark.parametrize("package", OF_PACKAGES)
def test_packages_offer_exactly_these_and_each_is_documented(package: str) -> None:
    module = import_module(package)
    assert set(module.__all__) == OF_PACKAGES[package]
    assert all(getattr(module, name).__doc__ for name in module.__all__)


def test_this_file_makes_one_of_every_error() -> None:
    assert {type(error).__name__ for error in ERRORS} == set(real_errors())


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_a_message_is_one_line_without_a_full_stop(error: TicklerError) -> None:
    assert str(error)
    assert "\n" not in str(error)
    assert not str(error).endswith(".")


def test_errors_travel_between_processes_with_their_fields() -> None:
    lost = []
    for error in ERRORS:
        try:
            copy = pickle.loads(pickle.dumps(error))
        except TypeError as failure:
            lost.append(f"{type(error).__name__}: {failure}")
        else:
            assert (type(copy), str(copy), vars(copy)) == (type(error), str(error), vars(error))
    assert lost == []


@pytest.mark.parametrize("module", ["tickler", "tickler.table", "tickler.web"])
def test_importing_tickler_imports_none_of_the_extras(module: str) -> None:
    ask = f"import sys, {module}; print(*sorted(set(sys.modules) & set({NOT_NEEDED!r})))"
    assert _python(ask) == ""


def test_tickler_imports_and_works_where_the_extras_are_missing() -> None:
    work = f"""
import asyncio, sys
sys.modules.update(dict.fromkeys({NOT_NEEDED!r}))
import tickler

async def main():
    async with tickler.connect("sqlite://") as t:
        await t.schedules.put(tickler.Schedule(owner="u1", key="digest", when="@hourly"))
        print(await t.index.count())

asyncio.run(main())
"""
    assert _python(work) == "1"


TABLE_ALONE = f"""
import asyncio, sys
sys.modules.update(dict.fromkeys({NOT_NEEDED!r}))
from tickler import InvalidInput
from tickler.table import Attr, Entity, Index, Key, Table, attr, progress_bar

shop = Table("shop")

class Order(Entity, table=shop):
    id: Attr[str] = attr()
    key = Key("ORDER" / id, "ORDER")
    all = Index("gsi1", "ORDER", id)
"""


def test_tables_in_files_and_in_memory_work_where_the_extras_are_missing() -> None:
    work = f"""{TABLE_ALONE}
async def main():
    for url in ("memory://", "sqlite://", "sqlite:///shop.db"):
        async with shop.connect(url) as db:
            await db.put(Order(id="1"))
            async with db.transaction() as tx:
                tx.put(Order(id="2"))
            (explained,) = await db.explain(lambda tx: tx.delete(Order.key.id("2")))
            print(await db.count(Order.all()), explained.total)

asyncio.run(main())
with shop.connect_sync("sqlite:///shop.db") as db:
    print(len(list(db.iterate(Order.all()))))
"""
    assert _python(work).splitlines() == ["2 2", "2 2", "2 2", "2"]


@pytest.mark.parametrize(
    ("wanted", "extra"),
    [
        ('shop.connect("postgresql://somewhere/shop")', "postgres"),
        ('shop.connect_sync("postgres://somewhere/shop")', "postgres"),
        ('shop.connect("dynamodb://shop")', "dynamodb"),
        ('progress_bar("loading")', "cli"),
    ],
)
def test_what_needs_an_extra_names_it(wanted: str, extra: str) -> None:
    work = f"{TABLE_ALONE}\ntry:\n    {wanted}\nexcept InvalidInput as error:\n    print(error)"
    said = _python(work)
    assert said.startswith(wanted.partition("(")[0] if extra == "cli" else "postgres" if extra == "postgres" else "dynamodb://")
    assert f"pip install 'ticklerfile[{extra}]'" in said


def test_an_http_session_names_the_extra_that_it_needs() -> None:
    work = f"""
import sys
sys.modules.update(dict.fromkeys({NOT_NEEDED!r}))
import tickler
try:
    tickler.connect("memory://").http_session()
except tickler.InvalidInput as error:
    print(error)
"""
    assert _python(work) == "http_session needs the package aiohttp: pip install 'ticklerfile[http]'"


def _python(code: str) -> str:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    with TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-c", code], cwd=folder, env=environment, capture_output=True, text=True, timeout=60
        )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_the_command_line_starts_where_only_its_own_extra_is_installed() -> None:
    missing = [name for name in NOT_NEEDED if name not in ("typer", "rich")]
    start = f"""
import sys
sys.modules.update(dict.fromkeys({missing!r}))
sys.argv = ["tickler", "--version"]
from tickler.cli import main
main()
"""
    assert _python(start).startswith("tickler ")
