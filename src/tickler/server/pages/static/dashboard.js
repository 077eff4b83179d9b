// The page *Now*: live counts, clocks, workers and fires.
import { byId, element } from "./tickler/element.js";
import { follow, stateOf } from "./stream.js";
import { formatTime, onZoneChange, showTime, zoneName } from "./time.js";

const MAX_LISTED = 12;
const MAX_NAV_COUNT = Number(document.querySelector("nav").dataset.maxCount);
const SHOWN_MS = 60_000;
const fires = [];
const [list, strip, live, noFires] = byId("fires", "strip", "live", "no-fires");
const [storeClock, nextDue] = byId("store-clock", "next-due");
const COUNTS_OF_ROWS = ["sleeping", "due", "late"]; // at least so many, where not all rows were read
let dueAt = Number(nextDue.dataset.dueAt);
let hasMore = "more" in nextDue.dataset;
let offset = Number(storeClock.dataset.nowMs) - Date.now(); // the store's clock less this browser's

function showStats(stats) {
  for (const place of document.querySelectorAll("[data-number]")) {
    const name = place.dataset.number;
    const isAtLeast = stats[name] >= (place.dataset.limit ?? Infinity) || (stats.more && COUNTS_OF_ROWS.includes(name));
    place.textContent = `${stats[name].toLocaleString()}${isAtLeast ? "+" : ""}`;
    const box = place.closest(".number");
    box.classList.toggle("bad", (name === "late" || name === "dead") && stats[name] > 0);
    box.classList.toggle("busy", name === "due" && stats[name] > 0);
  }
  showDeadCount(stats.dead);
  offset = stats.now_ms - Date.now();
  showClocks();
  showWorkers(stats.workers, stats.now_ms);
  dueAt = stats.next_due_at;
  hasMore = stats.more;
  showNextDue();
}

/** Show "now" for an instant that has passed: a worker is about to claim that fire. */
function showNextDue() {
  const isPast = dueAt && dueAt <= Date.now() + offset;
  if (isPast) document.getElementById("first-due")?.remove();
  if (!dueAt) nextDue.textContent = hasMore ? "unknown (too many schedules)" : "none";
  else if (isPast) nextDue.textContent = "now";
  else {
    if (!nextDue.firstElementChild) nextDue.replaceChildren(element("time"));
    showTime(nextDue.firstElementChild, dueAt);
  }
}

/** Update the count of dead fires in the navigation. */
function showDeadCount(number) {
  const link = document.querySelector("nav a[href='/failed']");
  const text = number > MAX_NAV_COUNT ? `${MAX_NAV_COUNT}+` : number;
  link.replaceChildren(link.firstChild, ...(number ? [" ", element("span", { className: "count" }, text)] : []));
}

/** Format a duration as the server does, without the smaller unit of two. */
function span(ms) {
  if (ms < 1_000) return `${Math.max(Math.round(ms), 0)} ms`;
  return ms < 60_000 ? `${Number((ms / 1000).toPrecision(3))} s` : `${Math.floor(ms / 60_000)} min`;
}

function showWorkers(all, now) {
  const table = document.getElementById("workers");
  if (!table) return; // the caller is limited to an owner
  const { missingMs, shownMs, stoppedMs } = table.dataset;
  const shown = all.filter((worker) => now - worker.seen_at < (worker.doing === "stopped" ? stoppedMs : shownMs));
  const rows = shown.map((worker) => {
    const isMissing = worker.doing !== "stopped" && now - worker.seen_at >= missingMs;
    const status = isMissing ? "missing" : worker.doing;
    const seen = `${span(Math.max(Math.floor((now - worker.seen_at) / 1000), 1) * 1000)} ago`;
    const dot = element("i", { className: "dot" });
    dot.dataset.status = status;
    const cells = { Name: [worker.name], Status: [dot, status], "In flight": [worker.in_flight], "Last seen": [seen] };
    return element("tr", {}, ...Object.entries(cells).map(([label, parts]) => {
      const cell = element("td", { className: label === "In flight" ? "num" : "" }, ...parts);
      cell.dataset.label = label;
      return cell;
    }));
  });
  table.tBodies[0].replaceChildren(...rows);
  document.getElementById("no-workers").hidden = rows.length > 0;
}

function showClocks() {
  const now = Date.now() + offset;
  storeClock.textContent = `${formatTime(now, "second")} ${zoneName(now)}`;
  const text = Math.abs(offset) < 500 ? "same as the store" : `${span(Math.abs(offset))} ${offset < 0 ? "ahead" : "behind"}`;
  document.querySelector("[data-offset=browser]").textContent = text;
}

function showFire(fire) {
  fires.push(fire);
  while (fires.length > 500) fires.shift();
  noFires.hidden = true;
  const state = stateOf(fire);
  const time = element("time", {}, formatTime(fire.at, "second"));
  Object.assign(time.dataset, { ms: fire.at, form: "second" });
  const href = `/schedules/${encodeURIComponent(fire.owner)}/${encodeURIComponent(fire.key)}`;
  const link = element("a", { href }, element("span", { className: "owner" }, `${fire.owner} /`), " ", element("b", {}, fire.key));
  const late = Math.max(fire.at - fire.nominal_at, 0);
  const item = element("li", {},
    time,
    element("span", { className: `state state-${state}` }, state),
    element("span", { className: "what" }, link, fire.detail ? `  ${fire.detail}` : ""),
    element("span", { className: "took" }, `${late >= 1000 ? `${span(late)} late, ` : ""}took ${span(fire.duration_ms ?? 0)}`));
  item.dataset.at = fire.at;
  // Slow attempts are reported late: sort by their start, the latest first.
  list.insertBefore(item, [...list.children].find((other) => Number(other.dataset.at) <= fire.at) ?? null);
  while (list.children.length > MAX_LISTED) list.lastElementChild.remove();
}

function draw() {
  const ratio = window.devicePixelRatio || 1;
  const width = strip.clientWidth, height = strip.clientHeight;
  strip.width = width * ratio;
  strip.height = height * ratio;
  const pen = strip.getContext("2d");
  pen.scale(ratio, ratio);
  const colours = getComputedStyle(document.documentElement);
  const now = Date.now() + offset;
  pen.strokeStyle = colours.getPropertyValue("--line");
  pen.fillStyle = colours.getPropertyValue("--soft");
  pen.font = "11px system-ui";
  const step = width < 500 ? 20 : 10; // seconds
  for (let s = 0; s < 60; s += step) {
    const since = (now % (step * 1000)) + s * 1000;
    const x = width - since / SHOWN_MS * width;
    pen.beginPath();
    pen.moveTo(x, 0);
    pen.lineTo(x, height - 14);
    pen.stroke();
    pen.fillText(formatTime(now - since, "second"), x + 3, height - 3);
  }
  const stateColours = new Map([...document.querySelectorAll(".legend i")].map((dot) => [dot.className, getComputedStyle(dot).backgroundColor]));
  const columns = new Map(); // many fires at one instant make a taller mark
  for (const fire of fires) {
    const age = now - fire.at;
    if (age > SHOWN_MS || age < -5000) continue;
    const place = `${stateOf(fire)} ${Math.round((width - (age / SHOWN_MS) * width) / 4)}`;
    columns.set(place, (columns.get(place) ?? 0) + 1);
  }
  for (const [place, number] of columns) {
    const [state, column] = place.split(" ");
    const size = Math.min(6 + 5 * Math.sqrt(number), 28);
    pen.fillStyle = stateColours.get(`state-${state}`);
    pen.fillRect(column * 4 - 1.5, state === "delivered" ? 31 - size : 34, 3, size);
  }
}

showClocks();
setInterval(() => {
  if (live.dataset.state === "lost") return;
  showClocks();
  showNextDue();
}, 1000);
setInterval(draw, matchMedia("(prefers-reduced-motion: reduce)").matches ? 1000 : 100);
draw();
onZoneChange(showClocks);
onZoneChange(showNextDue);
follow(live, { stats: showStats, fire: showFire }, () => {
  list.replaceChildren();
  fires.length = 0;
});
