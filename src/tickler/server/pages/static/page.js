// What every page does: instants in the viewer's own zone, and a question before what cannot be undone.

const full = new Intl.DateTimeFormat(undefined, {
  weekday: "short", day: "numeric", month: "short", hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23",
});
const dated = new Intl.DateTimeFormat(undefined, { dateStyle: "full", timeStyle: "long" });

export function here(ms) {
  return full.format(new Date(ms));
}

export function localize(root) {
  for (const time of root.querySelectorAll("time[data-ms]:not([data-clock])")) {
    const ms = Number(time.dataset.ms);
    time.textContent = here(ms);
    time.title = `${dated.format(new Date(ms))} · ${new Date(ms).toISOString()}`;
  }
}

localize(document);

for (const part of document.querySelectorAll("[data-from-end]")) part.scrollLeft = part.scrollWidth; // the latest is on the right

for (const form of document.querySelectorAll("form[data-ask]")) {
  form.addEventListener("submit", (event) => {
    if (!window.confirm(form.dataset.ask)) event.preventDefault();
  });
}
