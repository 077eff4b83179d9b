// On every page: a question before what cannot be undone, copy buttons, and the zone of the browser where none was chosen.
import { askBefore } from "./tickler/confirm.js";
import { forgetNotice } from "./tickler/notice.js";

const COPIED_MS = 2_000;

/** Set up a page, or a part of it that was replaced. */
export function prepare(root) {
  askBefore(root);
  for (const button of root.querySelectorAll("[data-copy]")) {
    if (!navigator.clipboard) continue; // only where the browser trusts the connection
    button.hidden = false;
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).value);
      button.textContent = "Copied";
      setTimeout(() => (button.textContent = "Copy"), COPIED_MS);
    });
  }
}

prepare(document);
forgetNotice();
for (const input of document.querySelectorAll("[data-guess-zone]")) {
  input.value = Intl.DateTimeFormat().resolvedOptions().timeZone || input.value;
}
