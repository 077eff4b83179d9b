// While somebody types a text: what the network makes of it, as the server counts.

const PAUSE_MS = 250;

/** Call `check` soon after the last of several changes, and not again before it has answered. */
export function afterTyping(field, check) {
  let timer = 0;
  let isBusy = false;
  let isStale = false;
  async function run() {
    if (isBusy) return void (isStale = true);
    isBusy = true;
    do {
      isStale = false;
      await check().catch(() => {});
    } while (isStale);
    isBusy = false;
  }
  field.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(run, PAUSE_MS);
  });
}

/** Replace the parts of an element by those of an answer that have the same name. */
export function replaceParts(root, parts) {
  for (const part of parts.querySelectorAll("[data-part]")) {
    root.querySelector(`[data-part="${part.dataset.part}"]`)?.replaceChildren(...part.childNodes);
  }
}
