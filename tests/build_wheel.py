"""Build the wheels and install ours with each extra alone, into an empty environment: `make wheel`.

Every extra has to bring what it promises, and nothing may need a package that only another extra brings. Each application is a
wheel of its own, which is installed with ours.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from zipfile import ZipFile

from rich.console import Console

ROOT = Path(__file__).parent.parent
DIST = ROOT / "dist"
APPS = {"slothpost": ("slothpost.plan",), "pricebook": ("pricebook.money",)}  # what each lets one import
PIP = ("-m", "pip", "--quiet", "--disable-pip-version-check")

# What each extra lets one import; "" is the core.
PROMISED = {
    "": (
        "tickler",
        "tickler.webhooks",
        "tickler.stores.sqlite",
        "tickler.stores.memory",
        "tickler.table.engines.sqlite.engine",
        "tickler.table.engines.memory.engine",
        "tickler.table.explain",
        "tickler.web",
    ),
    "cli": ("tickler.cli.app", "tickler.cli.commands.serve", "tickler.cli.commands.table", "tickler.database.progress_bar"),
    "postgres": ("tickler.stores.postgres", "tickler.table.engines.postgres.engine"),
    "dynamodb": ("tickler.stores.dynamodb", "tickler.table.engines.dynamodb.engine"),
    "http": ("tickler.deliver.targets.http", "cryptography.fernet"),
    "aws": ("tickler.deliver.targets.sqs", "tickler.deliver.targets.aws_lambda"),
    "server": ("tickler.server.app", "tickler.observe.metrics", "tickler.cli.app", "tickler.deliver.targets.http", "uvloop"),
    "uvloop": ("uvloop",),
    "traces": ("tickler.observe.tracing",),
    "testing": ("tickler.testing",),
    "all": (
        "tickler.server.app",
        "tickler.stores.postgres",
        "tickler.stores.dynamodb",
        "tickler.observe.tracing",
        "tickler.table.engines.postgres.engine",
        "tickler.table.engines.dynamodb.engine",
    ),
}
WORKS = """
import asyncio, tickler
from tickler.table import Attr, Entity, Index, Key, Table, attr
from tickler.table.schema import html_page

shop = Table("shop")

class Order(Entity, table=shop):
    id: Attr[str] = attr()
    key = Key("ORDER" / id, "ORDER")
    all = Index("gsi1", "ORDER", id)

async def main():
    async with tickler.connect("sqlite:///t.db") as t, shop.connect(t) as db:
        await t.schedules.put(tickler.Schedule(owner="u1", key="digest", when="@hourly"))
        assert await t.index.count() == 1
        async with db.transaction() as tx:
            tx.put(Order(id="1"))
            await t.schedules.put(tickler.Schedule(owner="u1", key="order", when="@daily"), using=tx)
        assert await t.index.count() == 2
        await read(db)
    async with shop.connect("memory://") as db:
        await db.put(Order(id="1"))
        await read(db)
        assert "</html>" in html_page(shop.describe(), await db.measure())

async def read(db):
    assert await db.count(Order.all()) == 1
    assert [order async for order in db.iterate(Order.all())] == [Order(id="1")]
    (explained,) = await db.explain(lambda tx: tx.delete(Order.key.id("1")))
    assert explained.total == 2, explained

asyncio.run(main())
with shop.connect_sync("sqlite:///t.db") as db:
    assert db.get(Order.key.id("1")) == Order(id="1")
"""


def build(folder: Path, project: Path = ROOT) -> Path:
    """The wheel, built from this tree or from that of an application."""
    shutil.rmtree(folder, ignore_errors=True)
    command = [sys.executable, *PIP, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(folder), str(project)]
    subprocess.run(command, check=True)
    (wheel,) = folder.glob("*.whl")
    return wheel


def missing_files(wheel: Path, project: Path = ROOT) -> list[str]:
    """Files of the package that are not in the wheel."""
    with ZipFile(wheel) as archive:
        packed = set(archive.namelist())
    source = project / "src"
    files = (file for file in source.rglob("*") if file.is_file() and "__pycache__" not in file.parts)
    return sorted(name for file in files if (name := file.relative_to(source).as_posix()) not in packed)


def check(wheel: Path, extra: str, folder: Path) -> str | None:
    """Install the wheel with that extra alone; the complaint of whatever fails, or None."""
    wanted = f"{wheel}[{extra}]" if extra else str(wheel)
    return _complaint([wanted], _imports(PROMISED[extra]) + WORKS, folder)


def check_application(name: str, wheels: list[Path], folder: Path) -> str | None:
    """Install the wheel of an application and ours; the complaint of whatever fails, or None."""
    return _complaint([str(wheel) for wheel in wheels], _imports(APPS[name]), folder)


def _imports(modules: tuple[str, ...]) -> str:
    return "".join(f"import {module}\n" for module in modules)


def _complaint(wanted: list[str], program: str, folder: Path) -> str | None:
    python = folder / "bin" / "python"
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    for command in ([*PIP, "install", "--constraint", ROOT / "constraints.txt", *wanted], ["-c", program]):
        done = subprocess.run([python, *command], cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            return done.stderr.strip()
    return None


def main() -> int:
    console = Console()
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    if set(declared) != set(PROMISED) - {""}:
        console.print(f"[red]pyproject.toml has the extras {sorted(declared)}: say in tests/build_wheel.py what each promises")
        return 1
    wheel = build(DIST)
    failed = [f"not in the wheel: {name}" for name in missing_files(wheel)]
    tried: dict[str, Callable[[Path], str | None]] = {
        extra or "the core alone": partial(check, wheel, extra) for extra in PROMISED
    }
    for name in APPS:
        project = ROOT / "apps" / name
        of_application = build(DIST / name, project)
        failed += [f"not in the wheel of {name}: {file}" for file in missing_files(of_application, project)]
        tried[name] = partial(check_application, name, [wheel, of_application])
    for title, attempt in tried.items():
        with tempfile.TemporaryDirectory() as folder, console.status(f"installing {title}"):
            complaint = attempt(Path(folder, "environment"))
        console.print(f"{'[green]works[/]' if complaint is None else '[red]FAILED[/]'}  {title}")
        if complaint is not None:
            failed.append(complaint)
    console.print("\n".join(failed) or f"{wheel.relative_to(ROOT)} is ready", highlight=False, markup=False)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
