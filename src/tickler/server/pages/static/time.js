// All times of a page in one format, and the zone switch in the header that they follow. `time_format.py` writes the same text.

const STORAGE_KEY = "tickler.zone";
const WEEKDAYS = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const ownZone = Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";
const zoneSwitch = document.getElementById("zone"); // on pages with a navigation
let offsets = null; // the formatter that names the offsets of the chosen zone

/** Return the offset of the chosen zone in minutes east of UTC. */
function offsetAt(ms) {
  const name = offsets.formatToParts(ms).find((part) => part.type === "timeZoneName").value; // GMT, GMT+1 or GMT-3:30
  return minutesOf(name.slice(3));
}

/** Read an offset such as +01:00 or -3:30. */
export function minutesOf(offset) {
  const [, sign, hours, minutes] = offset.match(/([+-])(\d+)(?::(\d\d))?$/) ?? [0, "+", 0, 0];
  return Number(`${sign}1`) * (Number(hours) * 60 + Number(minutes ?? 0));
}

/** Return the wall-clock time at an offset, which is that of the chosen zone unless given. */
export function formatTime(ms, form = "full", offset = offsetAt(ms)) {
  const at = new Date(ms + offset * 60_000);
  const [, time] = at.toISOString().split("T");
  const [minute, second] = [time.slice(0, 5), time.slice(0, 8)];
  const day = `${at.getUTCDate()} ${MONTHS[at.getUTCMonth()]}`;
  const date = `${WEEKDAYS[at.getUTCDay()]} ${day}`;
  const year = at.getUTCFullYear() === new Date(Date.now() + offset * 60_000).getUTCFullYear() ? "" : ` ${at.getUTCFullYear()}`;
  const full = `${date}${year}, ${at.getUTCSeconds() ? second : minute}`;
  return { full, date, day: `${day}, ${minute}`, minute, second }[form];
}

/** Return the name of an offset: UTC, UTC+1 or UTC-3:30. */
export function zoneName(ms, offset = offsetAt(ms)) {
  const [hours, minutes] = [Math.floor(Math.abs(offset) / 60), Math.abs(offset) % 60];
  return offset ? `UTC${offset < 0 ? "-" : "+"}${hours}${minutes ? `:${String(minutes).padStart(2, "0")}` : ""}` : "UTC";
}

/** Fill an element with a time at an offset, and with the name of that offset. */
export function showTime(element, ms, offset = offsetAt(ms)) {
  const zone = Object.assign(document.createElement("small"), { textContent: zoneName(ms, offset) });
  element.replaceChildren(`${formatTime(ms, "full", offset)} `, zone);
  element.title = new Date(ms).toISOString();
}

/** Show all times below an element in the chosen zone. */
export function showTimes(root) {
  for (const element of root.querySelectorAll("[data-ms]")) {
    const ms = Number(element.dataset.ms);
    const { form, before } = element.dataset;
    if (form) element.textContent = formatTime(ms, form);
    else if (before) element.textContent = `${before} ${formatTime(ms)} ${zoneName(ms)}`; // titles in an SVG hold text alone
    else showTime(element, ms);
  }
  const name = document.documentElement.dataset.zone === "utc" ? "UTC" : "your zone";
  for (const element of root.querySelectorAll("[data-zone-name]")) element.textContent = name;
}

/** Call a function whenever the reader chooses another zone. */
export function onZoneChange(listener) {
  zoneSwitch?.addEventListener("change", listener);
}

/** Browsers may refuse storage: the choice then lasts until the page is left. */
function storage(use) {
  try {
    return use(localStorage);
  } catch {
    return null;
  }
}

function choose(choice) {
  const option = zoneSwitch && [...zoneSwitch.options].find((each) => each.value === choice);
  const zone = { utc: "UTC", its: option?.dataset.zone }[choice] ?? ownZone;
  try {
    offsets = new Intl.DateTimeFormat("en", { timeZone: zone, timeZoneName: "shortOffset" });
  } catch {
    return choose("yours"); // the browser does not know the schedule's zone
  }
  document.documentElement.dataset.zone = option ? choice : "yours";
  if (zoneSwitch) zoneSwitch.value = document.documentElement.dataset.zone;
}

choose(storage((stored) => stored.getItem(STORAGE_KEY)) ?? "yours");
if (zoneSwitch) {
  zoneSwitch.options[0].textContent = `Your zone (${ownZone})`;
  zoneSwitch.parentElement.hidden = false;
  zoneSwitch.addEventListener("change", () => {
    storage((stored) => stored.setItem(STORAGE_KEY, zoneSwitch.value));
    choose(zoneSwitch.value);
    showTimes(document);
  });
}
