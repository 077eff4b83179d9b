"""The page of `tickler table show --html`: opened from a file, in both colour schemes, on a desk and on a phone."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio
from table.goods import goods
from table.guide_tables import guide_classes

from tickler.table import Table
from tickler.table.measurement import Fill, Measurement, Partition
from tickler.table.schema.page import html_page
from tickler.testing.table_fixtures import TABLE

from .pictures import SCHEMES, picture
from .visitor import TELEPHONE, Visitor

if TYPE_CHECKING:
    from playwright.async_api import Browser

GUIDE = guide_classes()
SHOP = GUIDE["shop"]
MEASURED = Measurement(
    Fill({"Customer": 400, "Order": 6_000}, Partition("CUSTOMER#c1", 16)),
    {
        "gsi1": Fill({"Order": 120}, Partition("PENDING_ORDER", 120)),
        "gsi2": Fill({"Order": 30}, Partition("DELETED#c1", 15)),
    },
    {"Customer": 30, "Order": 200},
)
# The left and right ends of all lines, beside the attribute and the key that each belongs to.
ENDS = """() => [...document.querySelectorAll(".wiring")].flatMap((wiring) => {
  const box = wiring.getBoundingClientRect();
  const middle = (element) => element.getBoundingClientRect().top + element.getBoundingClientRect().height / 2 - box.top;
  const paths = [...wiring.querySelectorAll("path")];
  return [...wiring.querySelectorAll("[data-from]")].flatMap((end) => end.dataset.from.split(" ").map((name) => {
    const [, y1, y2] = paths.shift().getAttribute("d").match(/^M[\\d.]+ ([\\d.]+)C.* ([\\d.]+)$/).map(Number);
    return [y1 - middle(wiring.querySelector(`[data-attribute="${name}"]`)), y2 - middle(end), paths.length];
  }));
})"""


@pytest_asyncio.fixture(loop_scope="session")
async def reader(chromium: Browser) -> AsyncIterator[Visitor]:
    context = await chromium.new_context(viewport={"width": 1280, "height": 820}, color_scheme="light", offline=True)
    reader = Visitor(await context.new_page(), "")
    yield reader
    await context.close()
    assert reader.faults == []


async def opened(reader: Visitor, folder: Path, table: Table, measured: Measurement | None = None) -> None:
    file = folder / f"{table.name}.html"
    file.write_text(html_page(table.describe(), measured, "sqlite:///shop.db"), encoding="utf-8")
    await reader.page.goto(file.as_uri())


@pytest.mark.parametrize("table", [SHOP, GUIDE["site"], goods, TABLE], ids=lambda table: table.name)
async def test_a_page_fits_and_can_be_read_everywhere(reader: Visitor, tmp_path: Path, table: Table) -> None:
    await opened(reader, tmp_path, table)
    for scheme in SCHEMES:
        await reader.page.emulate_media(color_scheme=scheme)
        await reader.look()
    await picture(reader, f"schema-{table.name}", tmp_path)


async def test_a_measured_page_fits_and_can_be_read_everywhere(reader: Visitor, tmp_path: Path) -> None:
    await opened(reader, tmp_path, SHOP, MEASURED)
    await picture(reader, "schema-measured", tmp_path)
    await reader.sees("120 of 6,000 items of Order, 2.0%")


@pytest.mark.parametrize("width", [1280, TELEPHONE["width"]])
async def test_a_line_leads_from_each_attribute_to_the_keys_that_it_makes(reader: Visitor, tmp_path: Path, width: int) -> None:
    await opened(reader, tmp_path, SHOP)
    await reader.page.set_viewport_size({"width": width, "height": 820})
    meet = f"() => ({ENDS})().every(([start, end]) => Math.abs(start) < 1 && Math.abs(end) < 1)"
    await reader.page.wait_for_function(meet)  # lines are drawn again after a change of the size
    ends = await reader.page.evaluate(ENDS)
    assert len(ends) == 11
    assert [left for *_, left in ends].count(0) == 2, "no line of either entity is left over"


async def test_an_attribute_lights_its_lines(reader: Visitor, tmp_path: Path) -> None:
    await opened(reader, tmp_path, SHOP)
    lit = reader.page.locator("#entity-Order path.on")
    assert await lit.count() == 0
    await reader.page.locator("#entity-Order [data-attribute=customer]").hover()
    assert await lit.count() == 2
    await reader.page.locator("h1").hover()
    assert await lit.count() == 0
