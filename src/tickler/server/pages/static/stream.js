// What the service tells of as it happens, and whether it can be heard.

const AGAIN_MS = 5_000;
const zone = new Intl.DateTimeFormat(undefined, { timeZoneName: "short" }).formatToParts().find((part) => part.type === "timeZoneName").value;

/** `place` says how it stands. `opened` and `lost` are called then; `heard` has a function for each kind of event. */
export function follow(place, heard, { opened = () => {}, lost = () => {} } = {}) {
  let source = null;

  function open() {
    if (!place.dataset.state || place.dataset.state === "off") place.textContent = "connecting…";
    const mine = source = new EventSource("/v1/live");
    mine.addEventListener("open", () => {
      place.dataset.state = "on";
      place.textContent = `live, ${zone}`;
      opened();
    });
    mine.addEventListener("error", () => {
      place.dataset.state = "lost";
      place.textContent = "not connected, trying again";
      lost();
      // Once it was refused, the browser does not try again.
      if (mine.readyState === EventSource.CLOSED) setTimeout(() => mine === source && open(), AGAIN_MS);
    });
    for (const [kind, hear] of Object.entries(heard)) mine.addEventListener(kind, (event) => hear(JSON.parse(event.data)));
  }

  function close() {
    source?.close();
    source = null;
  }

  open();
  return { open: () => source ?? open(), close };
}
