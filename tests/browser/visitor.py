"""A visitor of the pages: clicks and types, and audits every page that opens."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.async_api import ConsoleMessage, Dialog, Locator, Page, ViewportSize

AUDIT = (Path(__file__).parent / "audit.js").read_text(encoding="utf-8")
TELEPHONE: ViewportSize = {"width": 390, "height": 844}
DESK: ViewportSize = {"width": 1440, "height": 900}
TIMEOUT_MS = 15_000
ROWS = "table.list tbody tr"
CHOICES = ("state", "kind", "delivery", "missed", "overlap")  # fields that are chosen from a list

_REFUSAL = re.compile(r"the server responded with a status of (\d+)")

# Records the number of each focused control, and whether its focus is visible. Returns how many controls there are.
SCROLLED = -2  # the number of a part that arrow keys scroll
_WATCH_FOCUS = f"""() => {{
  const isShown = (element) => element.checkVisibility({{ visibilityProperty: true }}) && element.getClientRects().length > 0;
  const selector = "a[href]:not([tabindex='-1']), button, input:not([type=hidden]), select, textarea, summary";
  const controls = () => [...document.querySelectorAll(selector)].filter(isShown);
  const used = controls();
  const isAtItsPlace = (each, n) => each === used[n];
  window.isSame = () => controls().length === used.length && controls().every(isAtItsPlace);
  window.focused = [];
  if (window.watchFocus) document.removeEventListener("focusin", window.watchFocus); // of an earlier round
  window.watchFocus = ({{ target }}) => {{
    const style = getComputedStyle(target);
    const seen = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2;
    const number = target.matches(".scroll, nav") ? {SCROLLED} : used.indexOf(target);
    window.focused.push({{ number, seen, what: target.outerHTML.slice(0, 100) }});
  }};
  document.addEventListener("focusin", window.watchFocus);
  document.body.tabIndex = -1; // so that the way begins at its beginning
  document.body.focus();
  document.body.removeAttribute("tabindex");
  window.focused.length = 0;
  return [used.length, document.querySelectorAll(".scroll, nav").length];
}}"""


class Visitor:
    """One tab. Script errors and accessibility problems are faults."""

    def __init__(self, page: Page, url: str) -> None:
        self.page = page
        self.questions: list[str] = []  # that the page asked before a change
        self.refusals: set[int] = set()  # statuses that are expected here
        self.may_be_cut_off = False
        self.faults: list[str] = []
        self._url = url
        page.set_default_timeout(TIMEOUT_MS)
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.faults.append(f"a script failed: {error}"))

    # Navigation.

    async def open(self, path: str) -> int:
        """Open a path and return the status of the response."""
        answer = await self.page.goto(self._url + path)
        await self.look()
        assert answer is not None
        return answer.status

    async def go(self, part: str) -> None:
        """Open an entry of the navigation; a count may follow its name."""
        links = self.page.get_by_role("navigation").get_by_role("link", name=re.compile(rf"^{part}( \d+\+?)?$"))
        async with self._leaving():
            await links.click()

    async def follow(self, name: str, within: Locator | None = None) -> None:
        async with self._leaving():
            await self._named("link", name, within).click()

    async def press(self, name: str, within: Locator | None = None, *, agree: bool | None = None) -> None:
        """Press a button that opens a page. `agree` answers the question that the page asks first; False stays on the page."""
        button = self._named("button", name, within)
        if agree is None:
            async with self._leaving():
                await button.click()
            return
        before = len(self.questions)
        self.page.once("dialog", lambda dialog: self._answer(dialog, agree))
        if agree:
            async with self._leaving():
                await button.click()
        else:
            await button.click()
        assert len(self.questions) == before + 1, f"{name}: the page asked nothing"

    async def fill(self, **fields: str) -> None:
        """Fill fields by their names in the form."""
        for name, text in fields.items():
            field = self.page.locator(f"main [name={name}]:not([type=hidden])")
            await (field.select_option(text) if name in CHOICES else field.fill(text))

    async def reload(self) -> None:
        await self.page.reload()
        await self.look()

    # Contents.

    @property
    def path(self) -> str:
        return self.page.url.removeprefix(self._url)

    async def sees(self, text: str, within: Locator | None = None) -> None:
        """Wait until a text is visible."""
        await (within or self.page.locator("main")).get_by_text(text).filter(visible=True).first.wait_for()

    async def reads(self) -> str:
        """Return the text of the page."""
        return await self.page.locator("main").inner_text()

    def row(self, *texts: str) -> Locator:
        """Return the row of a table that has all of these texts."""
        rows = self.page.locator(ROWS)
        for text in texts:
            rows = rows.filter(has_text=text)
        return rows

    async def keys(self) -> list[str]:
        """Return the keys of the listed schedules."""
        return await self.page.locator(f"{ROWS} td:first-child a b").all_inner_texts()

    async def buttons(self) -> list[str]:
        """Return the labels of all buttons that change something."""
        return [name for name in await self.page.locator("main button, main .button").all_inner_texts() if name != "Filter"]

    async def look(self) -> None:
        """Audit the page as it is."""
        self.faults += [f"{self.path}: {fault}" for fault in await self.page.evaluate(AUDIT)]
        assert not self.faults, "\n".join(self.faults)

    async def tab_through(self) -> None:
        """Check that Tab reaches all controls in the order of the page, with a visible focus.

        A page that shows fires as they happen may get or lose a control meanwhile: then Tab goes round again.
        """
        used, focused = 0, []
        for _ in range(5):
            used, scrolled = await self.page.evaluate(_WATCH_FOCUS)
            for _ in range(used + scrolled):
                await self.page.keyboard.press("Tab")
            focused = await self.page.evaluate("window.focused")
            if await self.page.evaluate("window.isSame()"):
                break
        reached = [each["number"] for each in focused if each["number"] != SCROLLED]
        assert [each["what"] for each in focused if not each["seen"]] == [], f"{self.path}: the focus is invisible"
        assert reached[:used] == list(range(used)), f"{self.path}: Tab goes in another order, among {used}"

    # Internals.

    def _named(self, role: str, name: str, within: Locator | None) -> Locator:
        place = within or self.page.locator("body")
        found = place.get_by_role(role, name=name, exact=True)  # type: ignore[arg-type]  # one of the two above
        return found.filter(visible=True)

    @asynccontextmanager
    async def _leaving(self) -> AsyncIterator[None]:
        async with self.page.expect_navigation():
            yield
        await self.look()

    async def _answer(self, dialog: Dialog, agree: bool) -> None:
        self.questions.append(dialog.message)
        await (dialog.accept() if agree else dialog.dismiss())

    def _console(self, message: ConsoleMessage) -> None:
        if message.type not in ("error", "warning"):
            return
        if self.may_be_cut_off and "net::ERR_" in message.text:
            return
        refusal = _REFUSAL.search(message.text)
        if refusal is None or int(refusal[1]) not in self.refusals:
            self.faults.append(f"{self.path}: the console says: {message.text}")
