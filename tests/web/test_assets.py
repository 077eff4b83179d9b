"""Static files of a package, and the digests in their addresses."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tickler import InvalidInput
from tickler.server.pages.assets import ASSETS
from tickler.web import Assets

from .asking import ask

FILES = {
    "style.css": "a { color: red }",
    "notes.py": "secret",
    "app.js": 'import { a } from "./a.js";\nimport "./b.js";\nconst c = await import("./deep/c.js");\nimport "./missing.js";',
    "a.js": "import {b as a} from './b.js'; export {a};",
    "b.js": 'export * from "./deep/c.js"; export const b = 1;',
    "deep/c.js": 'import d from "../d.js"; export const c = "./a.js";',
    "d.js": "export default 4;",
    "deep/icon.svg": "<svg/>",
}


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    folder = tmp_path / "shop_pages"
    for name, text in {"__init__.py": "", **{f"static/{name}": text for name, text in FILES.items()}}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    yield folder
    sys.modules.pop("shop_pages", None)


def text_of(assets: Assets, name: str) -> str:
    found = assets.find(name)
    assert found is not None
    return found.body.decode()


def test_imports_between_scripts_have_digests_however_they_are_written(package: Path) -> None:
    assets = Assets("shop_pages")
    app = text_of(assets, "app.js")
    for name in ("a.js", "b.js", "deep/c.js"):
        assert f'"{assets.url(name)}"' in app
        assert re.fullmatch(rf"/static/{re.escape(name)}\?v=[0-9a-f]{{12}}", assets.url(name))
    assert '"./missing.js"' in app
    assert f"'{assets.url('b.js')}'" in text_of(assets, "a.js")
    assert f'"{assets.url("deep/c.js")}"' in text_of(assets, "b.js")
    assert text_of(assets, "deep/c.js") == f'import d from "{assets.url("d.js")}"; export const c = "./a.js";'


def test_a_change_far_below_changes_the_address_of_all_that_import_it(package: Path) -> None:
    before = Assets("shop_pages")
    (package / "static" / "d.js").write_text("export default 5;")
    after = Assets("shop_pages")
    changed = {name for name in FILES if name.endswith((".js", ".css", ".svg")) and before.url(name) != after.url(name)}
    assert changed == {"app.js", "a.js", "b.js", "deep/c.js", "d.js"}


def test_scripts_that_import_each_other_are_refused_by_name(package: Path) -> None:
    (package / "static" / "d.js").write_text('import "./a.js";')
    with pytest.raises(
        InvalidInput, match=r"a\.js imports b\.js imports deep/c\.js imports d\.js imports a\.js: break the circle"
    ):
        Assets("shop_pages")


def test_the_files_that_all_pages_share_are_below_tickler_if_they_are_wanted(package: Path) -> None:
    (package / "static" / "shared.js").write_text('import { askBefore } from "./tickler/confirm.js";')
    assets = Assets("shop_pages", shared=True)
    assert f'"{assets.url("tickler/confirm.js")}"' in text_of(assets, "shared.js")
    assert "--paper" in text_of(assets, "tickler/theme.css")
    assert assets.url("style.css") == Assets("shop_pages").url("style.css")
    assert Assets("shop_pages").find("tickler/theme.css") is None


async def test_the_service_and_an_application_serve_the_same_shared_files(package: Path) -> None:
    assets = Assets("shop_pages", shared=True)
    for name in ("tickler/theme.css", "tickler/confirm.js", "tickler/notice.js", "tickler/element.js"):
        assert assets.url(name) == ASSETS.url(name)
        assert (await ask(assets, path=assets.url(name))).body.decode() == text_of(ASSETS, name)


def test_only_files_of_known_kinds_are_assets(package: Path) -> None:
    assets = Assets("shop_pages")
    assert assets.find("notes.py") is None
    with pytest.raises(InvalidInput, match=r"there is no 'nothing\.css'"):
        assets.url("nothing.css")
    with pytest.raises(InvalidInput, match="slash"):
        Assets("shop_pages", at="/static")


async def test_only_what_a_digest_names_is_kept_for_ever(package: Path) -> None:
    """Behind one address, a process that is still of the version before would plant its files for a year."""
    before = Assets("shop_pages")
    (package / "static" / "style.css").write_text("a { color: blue }")
    after = Assets("shop_pages")
    for query in (after.url("style.css").partition("?")[2], "", "v=", "v=\xff"):
        got = await ask(before, path=f"/static/style.css?{query}")
        assert (got.body.decode(), got.headers["cache-control"]) == (FILES["style.css"], "no-cache")
    assert (await ask(after, path=after.url("style.css"))).headers["cache-control"].endswith("immutable")


async def test_a_file_is_kept_for_ever_and_nothing_else_is_served(package: Path) -> None:
    assets = Assets("shop_pages", at="/files/")
    got = await ask(assets, path=assets.url("style.css"))
    assert (got.status, got.body.decode()) == (200, FILES["style.css"])
    assert got.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert got.headers["content-type"] == "text/css; charset=utf-8"
    head = await ask(assets, "HEAD", assets.url("deep/icon.svg"))
    assert (head.status, head.body, head.headers["content-length"]) == (200, b"", "6")
    for path in (
        "/files/",
        "/files/notes.py",
        "/files/../__init__.py",
        "/files/%2e%2e/x",
        "/files//style.css",
        "/style.css",
        "/",
    ):
        assert (await ask(assets, path=path)).problem["status"] == 404, path
    refused = await ask(assets, "POST", "/files/style.css")
    assert (refused.status, refused.headers["allow"]) == (405, "GET, HEAD")
