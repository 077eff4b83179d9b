// The stream of live events, and the state of its connection.

const RECONNECT_MS = 5_000;

/** Return the state of the fire after an attempt, as `timeline.py` names it. */
export function stateOf(fire) {
  if (fire.gave_up) return "dead";
  return fire.happened === "failed" ? "retrying" : fire.happened;
}

/** Follow the stream. `place` shows the connection; `handlers` has a function per kind of event; `opened` is a callback. */
export function follow(place, handlers, opened = () => {}) {
  let source = null;

  function open() {
    if (!place.dataset.state || place.dataset.state === "off") place.textContent = "connecting…";
    const mine = source = new EventSource("/v1/live");
    mine.addEventListener("open", () => {
      place.dataset.state = "on";
      place.textContent = "live";
      opened();
    });
    mine.addEventListener("error", () => {
      place.dataset.state = "lost";
      place.textContent = "not connected, retrying";
      // The browser does not reconnect after a refusal.
      if (mine.readyState === EventSource.CLOSED) setTimeout(() => mine === source && open(), RECONNECT_MS);
    });
    for (const [kind, handle] of Object.entries(handlers)) mine.addEventListener(kind, (event) => handle(JSON.parse(event.data)));
  }

  function close() {
    source?.close();
    source = null;
  }

  open();
  return { open: () => source ?? open(), close };
}
