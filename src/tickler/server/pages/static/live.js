// The page *Now*: numbers, clocks and fires, as the service tells of them.
import { show } from "./page.js";
import { follow } from "./stream.js";

const MAX_LISTED = 12;
const MAX_FAILED = Number(document.querySelector("nav").dataset.maxCount); // that the navigation counts
const SHOWN_MS = 60_000;
const fires = [];
const list = document.getElementById("fires");
const strip = document.getElementById("strip");
const live = document.getElementById("live");
const main = live.closest("main");
const hasNone = document.getElementById("no-fires");
const storeClock = document.querySelector("[data-clock=store]");
const clock = new Intl.DateTimeFormat(undefined, { timeStyle: "medium", hourCycle: "h23" });
const nextDue = document.getElementById("next-due");
let dueAt = Number(nextDue.querySelector("time")?.dataset.ms ?? (nextDue.textContent === "now" ? 1 : 0));
let hasMore = nextDue.textContent.startsWith("not known");
let offset = Number(storeClock.dataset.ms) - Date.now();

const ofRows = ["sleeping", "due", "late"];

function count(value, most, more) {
  return more || (most && value >= most) ? `${value.toLocaleString()}+` : value.toLocaleString();
}

function showNumbers(stats) {
  for (const place of document.querySelectorAll("[data-number]")) {
    const name = place.dataset.number;
    place.textContent = count(stats[name], Number(place.dataset.most || 0), stats.more && ofRows.includes(name));
    const box = place.closest(".number");
    box.classList.toggle("bad", (name === "late" || name === "dead") && stats[name] > 0);
    box.classList.toggle("busy", name === "due" && stats[name] > 0);
  }
  showFailed(stats.dead);
  offset = stats.now_ms - Date.now();
  showClocks();
  showWorkers(stats.workers, stats.now_ms);
  dueAt = stats.next_due_at;
  hasMore = stats.more;
  showNextDue();
}

/** An instant that has passed is not the next: what is due is about to be claimed. */
function showNextDue() {
  const isPast = dueAt && dueAt <= Date.now() + offset;
  if (isPast) document.getElementById("first-due")?.remove();
  if (!dueAt) nextDue.textContent = hasMore ? "not known: there are too many" : "nothing";
  else if (isPast) nextDue.textContent = "now";
  else {
    if (!nextDue.firstElementChild) nextDue.replaceChildren(document.createElement("time"));
    show(nextDue.firstElementChild, dueAt);
  }
}

/** The count beside *Failed*, in the navigation of this page too. */
function showFailed(number) {
  const link = document.querySelector("nav a[href='/failed']");
  let place = link.querySelector(".count");
  if (!number) return place?.remove();
  if (!place) {
    place = Object.assign(document.createElement("span"), { className: "count" });
    link.append(" ", place);
  }
  place.textContent = number > MAX_FAILED ? `${MAX_FAILED}+` : number;
}

function ago(ms) {
  const s = Math.max(Math.round(ms / 1000), 0);
  return s < 100 ? `${s} s ago` : `${Math.round(s / 60)} min ago`;
}

function showWorkers(all, now) {
  const table = document.getElementById("workers");
  if (!table) return; // whoever is bound to an owner sees none
  const { missingMs, shownMs, stoppedMs } = table.dataset;
  const shown = all.filter((worker) => now - worker.seen_at < (worker.doing === "stopped" ? stoppedMs : shownMs));
  const rows = shown.map((worker) => {
    const isMissing = worker.doing !== "stopped" && now - worker.seen_at >= missingMs;
    const doing = isMissing ? "missing" : worker.doing;
    const cells = { Name: worker.name, Does: doing, "In flight": worker.in_flight, "Heard of": ago(now - worker.seen_at) };
    const row = document.createElement("tr");
    for (const [label, text] of Object.entries(cells)) {
      const cell = row.insertCell();
      cell.dataset.label = label;
      cell.classList.toggle("num", label === "In flight");
      if (label === "Does") {
        const dot = cell.appendChild(Object.assign(document.createElement("i"), { className: "dot" }));
        dot.dataset.doing = doing;
      }
      cell.append(text);
    }
    return row;
  });
  table.tBodies[0].replaceChildren(...rows);
  document.getElementById("no-workers").hidden = rows.length > 0;
}

function showClocks() {
  storeClock.textContent = `${new Date(Date.now() + offset).toISOString().slice(11, 19)} UTC`;
  const off = Math.round(-offset);
  const says = Math.abs(off) < 500 ? "the same" : `${off > 0 ? "ahead" : "behind"} by ${(Math.abs(off) / 1000).toFixed(1)} s`;
  document.querySelector("[data-offset=browser]").textContent = says;
}

function kindOf(fire) {
  if (fire.happened === "delivered") return "delivered";
  return fire.gave_up ? "dead" : "retry";
}

function showFire(fire) {
  fires.push(fire);
  while (fires.length > 500) fires.shift();
  hasNone.hidden = true;
  const item = document.createElement("li");
  const kind = kindOf(fire);
  const time = Object.assign(document.createElement("time"), { textContent: clock.format(fire.at) });
  const state = Object.assign(document.createElement("span"), {
    className: `state state-${kind === "delivered" ? "delivered" : kind === "retry" ? "waiting" : "dead"}`,
    textContent: kind === "delivered" ? "delivered" : kind === "retry" ? "failed" : "given up",
  });
  const what = Object.assign(document.createElement("span"), { className: "what" });
  const link = Object.assign(document.createElement("a"), {
    href: `/schedules/${encodeURIComponent(fire.owner)}/${encodeURIComponent(fire.key)}`,
  });
  link.append(
    Object.assign(document.createElement("span"), { className: "owner", textContent: `${fire.owner} /` }), " ",
    Object.assign(document.createElement("b"), { textContent: fire.key }),
  );
  what.append(link, fire.detail ? `  ${fire.detail}` : "");
  const late = Math.max(fire.at - fire.nominal_at, 0);
  const took = Object.assign(document.createElement("span"), {
    className: "took",
    textContent: `${late >= 1000 ? `${(late / 1000).toFixed(1)} s late, ` : ""}took ${fire.duration_ms ?? 0} ms`,
  });
  item.append(time, state, what, took);
  item.dataset.at = fire.at;
  // What took longer is told of later: by when they began, the latest first.
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
    pen.fillText(clock.format(now - since), x + 3, height - 3);
  }
  const tones = { delivered: "--good", retry: "--late", dead: "--bad" };
  const columns = new Map(); // many at one instant make a taller mark
  for (const fire of fires) {
    const age = now - fire.at;
    if (age > SHOWN_MS || age < -5000) continue;
    const kind = kindOf(fire);
    const place = `${kind} ${Math.round((width - (age / SHOWN_MS) * width) / 4)}`;
    columns.set(place, (columns.get(place) ?? 0) + 1);
  }
  for (const [place, number] of columns) {
    const [kind, column] = place.split(" ");
    const size = Math.min(6 + 5 * Math.sqrt(number), 28);
    pen.fillStyle = colours.getPropertyValue(tones[kind]);
    if (kind === "delivered") pen.fillRect(column * 4 - 1.5, 31 - size, 3, size);
    else pen.fillRect(column * 4 - 1.5, 34, 3, size);
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
follow(live, { stats: showNumbers, fire: showFire }, {
  opened() {
    list.replaceChildren();
    fires.length = 0;
    main.classList.remove("old");
  },
  lost() {
    main.classList.add("old"); // what is shown was so when it was last heard of
  },
});
