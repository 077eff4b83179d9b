// The page of one schedule: what it says is read again when one of its fires was tried.
import { prepare } from "./page.js";
import { follow } from "./stream.js";

const EVERY_MS = 1_000; // at most
const USED = "a[href], button, summary, input:not([type=hidden]), .scroll";
const { owner, key } = document.querySelector("[data-schedule]").dataset;
const news = document.getElementById("news");
const MAX_LOOKS = 3; // a fire is told of before its history is written
const SAID_MS = 60_000;
let readAt = Date.now();
let looks = 0;
let awaited = null;
let isBusy = false;

function parts(root) {
  return new Map([...root.querySelectorAll("[data-part]")].map((part) => [part.dataset.part, part]));
}

/** What can be used in a part, by the row it stands in and its number there: rows move. */
function used(part) {
  const numbers = new Map();
  return new Map([...part.querySelectorAll(USED)].map((element) => {
    const row = element.closest("[data-row]")?.dataset.row ?? "";
    const number = numbers.get(row) ?? 0;
    numbers.set(row, number + 1);
    return [`${row} ${element.tagName} ${number}`, element];
  }));
}

/** Put new contents into a part; what was open stays open, and whoever was there stays there. */
function replace(part, fresh) {
  const before = [...used(part)];
  const opened = before.filter(([, element]) => element.parentElement.open).map(([name]) => name);
  const focused = before.find(([, element]) => element === document.activeElement)?.[0];
  part.replaceChildren(...fresh.childNodes);
  prepare(part);
  const after = used(part);
  for (const name of opened) if (after.has(name)) after.get(name).parentElement.open = true;
  if (!focused) return;
  const place = after.get(focused) ?? part.querySelector("h2") ?? document.querySelector("h1");
  if (place.matches("h1, h2")) place.tabIndex = -1;
  place.focus({ preventScroll: true });
}

async function refresh() {
  readAt = Date.now();
  const answer = await fetch(location.pathname + location.search, { headers: { accept: "text/html" } });
  if (!answer.ok || answer.redirected) return; // gone, or signed out: what is shown was so, and whatever is pressed next tells
  const fresh = parts(new DOMParser().parseFromString(await answer.text(), "text/html"));
  for (const [name, part] of parts(document)) if (fresh.has(name)) replace(part, fresh.get(name));
}

async function soon(fire = null) {
  looks = MAX_LOOKS;
  awaited = fire;
  if (isBusy) return;
  isBusy = true;
  while (looks > 0) {
    looks -= 1;
    await refresh().catch(() => {});
    await new Promise((done) => setTimeout(done, EVERY_MS));
    if (looks < MAX_LOOKS && (!awaited || isShown(awaited))) looks = 0;
  }
  isBusy = false;
}

/** Those of the last minutes are told again to whoever connects. */
function isShown(fire) {
  const instants = [...document.querySelectorAll("[data-at]")].map((row) => Number(row.dataset.at));
  return instants.includes(fire.at) || fire.at < (instants.at(-1) ?? 0);
}

const stream = follow(document.getElementById("live"), {
  fire(fire) {
    if (fire.owner !== owner || fire.key !== key || isShown(fire)) return;
    news.textContent = `${fire.happened === "delivered" ? "Delivered" : fire.gave_up ? "Given up" : "Failed"} at ${new Date(fire.at).toLocaleTimeString()}`;
    soon(fire);
  },
});

// What is said of when it fires next is true for a minute, or until it fires.
setInterval(() => {
  const dueAt = Number(document.querySelector("[data-due-at]")?.dataset.dueAt ?? 0);
  const isDue = dueAt > readAt && dueAt <= Date.now();
  if (!document.hidden && !isBusy && (isDue || Date.now() - readAt >= SAID_MS)) soon();
}, EVERY_MS);

// A browser has few connections for all of its tabs: those that nobody looks at need none.
document.addEventListener("visibilitychange", () => {
  if (document.hidden) stream.close();
  else {
    stream.open();
    soon();
  }
});
