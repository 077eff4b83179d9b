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

/** A page, or a part of it that is new. */
export function prepare(root) {
  for (const time of root.querySelectorAll("time[data-ms]:not([data-clock])")) show(time, Number(time.dataset.ms));

  for (const part of root.querySelectorAll("[data-latest]")) {
    const ends = [...part.querySelectorAll(part.dataset.latest)].map((each) => each.getBoundingClientRect().right);
    part.scrollLeft = Math.max(...ends) - part.getBoundingClientRect().right + 60; // so that it is in sight, and a bit of what follows
  }

  for (const form of root.querySelectorAll("form[data-ask]")) {
    form.addEventListener("submit", (event) => {
      if (!window.confirm(form.dataset.ask)) event.preventDefault();
      else form.append(Object.assign(document.createElement("input"), { type: "hidden", name: "sure", value: "yes" }));
    });
  }
}

/** What was said is said once, and not to whoever opens this page again. */
function forgetWhatWasSaid() {
  const asked = location.search.slice(1).split("&").filter(Boolean);
  const kept = asked.filter((each) => !each.startsWith("said="));
  if (kept.length < asked.length) {
    history.replaceState(history.state, "", location.pathname + (kept.length ? `?${kept.join("&")}` : "") + location.hash);
  }
}

prepare(document);
forgetWhatWasSaid();
