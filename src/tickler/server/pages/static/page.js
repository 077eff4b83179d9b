// What every page does: instants in the viewer's own zone, and a question before what cannot be undone.

const dated = new Intl.DateTimeFormat(undefined, { dateStyle: "full", timeStyle: "long" });

/** An instant as people say it, and the zone beside it: no seconds or year that go without saying. */
export function show(time, ms) {
  const at = new Date(ms);
  const parts = new Intl.DateTimeFormat(undefined, {
    weekday: "short", day: "numeric", month: "short", hour: "2-digit", minute: "2-digit", hourCycle: "h23", timeZoneName: "short",
    second: at.getSeconds() ? "2-digit" : undefined,
    year: at.getFullYear() === new Date().getFullYear() ? undefined : "numeric",
  }).formatToParts(at);
  const text = parts.filter((part) => part.type !== "timeZoneName").map((part) => part.value).join("");
  const zone = parts.find((part) => part.type === "timeZoneName").value;
  time.replaceChildren(`${text.trim()} `, Object.assign(document.createElement("small"), { textContent: zone }));
  time.title = `${dated.format(at)} · ${at.toISOString()}`;
}

for (const time of document.querySelectorAll("time[data-ms]:not([data-clock])")) show(time, Number(time.dataset.ms));

for (const part of document.querySelectorAll("[data-from-end]")) part.scrollLeft = part.scrollWidth; // the latest is on the right

for (const form of document.querySelectorAll("form[data-ask]")) {
  form.addEventListener("submit", (event) => {
    if (!window.confirm(form.dataset.ask)) event.preventDefault();
  });
}
