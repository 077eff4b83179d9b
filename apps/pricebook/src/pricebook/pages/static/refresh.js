// Reads a page again at the instant at which prices change, or every second while something is under way, and replaces its parts.
import { askBefore } from "./tickler/confirm.js";

const EVERY_MS = 1_000;
const AFTER_MS = 500; // the server's clock may be a little behind what it said
const MAX_WAIT_MS = 86_400_000;

/** Follow what the page says of itself: `data-reload-at` with `data-now`, or `data-follow`. */
export function keepUp() {
  const { now, reloadAt, follow } = document.getElementById("main").dataset;
  if (follow !== undefined) setTimeout(reread, EVERY_MS);
  else if (reloadAt) setTimeout(reread, Math.min(Date.parse(reloadAt) - Date.parse(now) + AFTER_MS, MAX_WAIT_MS));
}

/** Replace the parts of the page that have changed. What somebody types or has chosen in a part stays as it is. */
async function reread() {
  const answer = document.hidden ? null : await fetch(location.href, { headers: { accept: "text/html" } }).catch(() => null);
  if (answer?.redirected) return location.reload(); // signed out meanwhile
  if (answer?.ok) {
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    const main = document.getElementById("main");
    for (const name of ["now", "reloadAt", "follow"]) {
      const value = fresh.getElementById("main").dataset[name];
      if (value === undefined) delete main.dataset[name];
      else main.dataset[name] = value;
    }
    for (const part of fresh.querySelectorAll("[data-part]")) replace(part);
  } else if (!document.hidden) {
    document.getElementById("main").dataset.follow ??= ""; // nothing answered: try again
  }
  if (document.hidden) document.addEventListener("visibilitychange", reread, { once: true });
  else keepUp();
}

function replace(part) {
  const shown = document.querySelector(`[data-part="${part.dataset.part}"]`);
  if (!shown || shown.innerHTML === part.innerHTML || shown.contains(document.activeElement)) return;
  keepChoices(shown, part);
  const open = [...shown.querySelectorAll("details")].map((each) => each.open);
  shown.replaceWith(part);
  const fresh = document.querySelector(`[data-part="${part.dataset.part}"]`);
  const details = fresh.querySelectorAll("details");
  if (details.length === open.length) details.forEach((each, number) => (each.open = open[number]));
  askBefore(fresh);
}

/** Take over into a fresh part what somebody has typed or chosen in the one that is shown. */
function keepChoices(shown, fresh) {
  for (const field of shown.querySelectorAll("input:not([type=hidden]), select, textarea")) {
    const same = [...fresh.querySelectorAll(`[name="${CSS.escape(field.name)}"]`)].find((each) => each.type !== "checkbox" || each.value === field.value);
    if (!same) continue;
    if (field.type === "checkbox") same.checked = field.checked;
    else if (field.value !== field.defaultValue) same.value = field.value;
  }
}
