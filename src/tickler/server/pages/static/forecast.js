// The page *Forecast*: arranges the heat map by the days and hours of the chosen zone.
import { element } from "./tickler/element.js";
import { formatTime, onZoneChange, zoneName } from "./time.js";

const body = document.querySelector(".heat").tBodies[0];
const hours = [...body.querySelectorAll("td[data-hour]")].map((cell) => [Number(cell.dataset.hour), cell]);

function arrange() {
  const rows = new Map();
  for (const [ms, original] of hours) {
    const cell = original.cloneNode(true);
    const day = formatTime(ms, "date");
    const hour = Number(formatTime(ms, "minute").slice(0, 2));
    cell.title = `${cell.dataset.due} ${formatTime(ms)} ${zoneName(ms)}`;
    if (!rows.has(day)) rows.set(day, Array(24).fill(null));
    const first = rows.get(day)[hour];
    if (!first) rows.get(day)[hour] = cell;
    else { // clocks go back: both hours are in one cell, as dark as the busier
      first.append(...cell.childNodes);
      first.title += `; ${cell.title}`;
      if (first.className < cell.className) first.className = cell.className;
    }
  }
  const empty = () => element("td", { className: "none" });
  body.replaceChildren(...[...rows].map(([day, cells]) =>
    element("tr", {}, element("th", { scope: "row" }, day), ...cells.map((cell) => cell ?? empty()))));
}

arrange();
onZoneChange(arrange);
