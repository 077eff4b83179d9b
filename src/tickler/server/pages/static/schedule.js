// The page of one schedule: reloads its parts after each attempt.
import { prepare } from "./page.js";
import { follow, stateOf } from "./stream.js";
import { formatTime } from "./time.js";

const MIN_RELOAD_MS = 1_000;
const CONTROLS = "a[href], button, summary, input:not([type=hidden]), .scroll";
const { owner, key } = document.querySelector("[data-schedule]").dataset;
const news = document.getElementById("news");
const MAX_RELOADS = 3; // an attempt is published before its history is written
const MAX_AGE_MS = 60_000;
let loadedAt = Date.now();
let reloads = 0;
let awaited = null;
let isBusy = false;

function parts(root) {
  return new Map([...root.querySelectorAll("[data-part]")].map((part) => [part.dataset.part, part]));
}

/** Return the controls of a part by their row and their number in it, since rows move. */
function controls(part) {
  const numbers = new Map();
  return new Map([...part.querySelectorAll(CONTROLS)].map((element) => {
    const row = element.closest("[data-row]")?.dataset.row ?? "";
    const number = numbers.get(row) ?? 0;
    numbers.set(row, number + 1);
    return [`${row} ${element.tagName} ${number}`, element];
  }));
}

/** Replace the contents of a part; details stay open and the focus stays in place. */
function replace(part, fresh) {
  const before = [...controls(part)];
  const opened = before.filter(([, element]) => element.parentElement.open).map(([name]) => name);
  const focused = before.find(([, element]) => element === document.activeElement)?.[0];
  part.replaceChildren(...fresh.childNodes);
  prepare(part);
  const after = controls(part);
  for (const name of opened) if (after.has(name)) after.get(name).parentElement.open = true;
  if (!focused) return;
  const place = after.get(focused) ?? part.querySelector("h2") ?? document.querySelector("h1");
  if (place.matches("h1, h2")) place.tabIndex = -1;
  place.focus({ preventScroll: true });
}

async function refresh() {
  loadedAt = Date.now();
  const answer = await fetch(location.pathname + location.search, { headers: { accept: "text/html" } });
  if (!answer.ok || answer.redirected) return; // deleted or signed out: the next click says so
  const fresh = parts(new DOMParser().parseFromString(await answer.text(), "text/html"));
  for (const [name, part] of parts(document)) if (fresh.has(name)) replace(part, fresh.get(name));
}

async function refreshSoon(fire = null) {
  reloads = MAX_RELOADS;
  awaited = fire;
  if (isBusy) return;
  isBusy = true;
  while (reloads > 0) {
    reloads -= 1;
    await refresh().catch(() => {});
    await new Promise((done) => setTimeout(done, MIN_RELOAD_MS));
    if (reloads < MAX_RELOADS && (!awaited || isShown(awaited))) reloads = 0;
  }
  isBusy = false;
}

/** Say whether the history shows this attempt: the stream repeats those of the last minutes. */
function isShown(fire) {
  const instants = [...document.querySelectorAll("[data-at]")].map((row) => Number(row.dataset.at));
  return instants.includes(fire.at) || fire.at < (instants.at(-1) ?? 0);
}

const stream = follow(document.getElementById("live"), {
  fire(fire) {
    if (fire.owner !== owner || fire.key !== key || isShown(fire)) return;
    const state = stateOf(fire);
    news.textContent = `${state[0].toUpperCase()}${state.slice(1)} at ${formatTime(fire.at, "second")}`;
    refreshSoon(fire);
  },
});

// The text under *Why* says when the schedule fires next: reload it every minute, and when it is due.
setInterval(() => {
  const dueAt = Number(document.querySelector("[data-due-at]")?.dataset.dueAt ?? 0);
  const isDue = dueAt > loadedAt && dueAt <= Date.now();
  if (!document.hidden && !isBusy && (isDue || Date.now() - loadedAt >= MAX_AGE_MS)) refreshSoon();
}, MIN_RELOAD_MS);

// A browser has few connections for all of its tabs: a hidden tab gives up its own.
document.addEventListener("visibilitychange", () => {
  if (document.hidden) stream.close();
  else {
    stream.open();
    refreshSoon();
  }
});
