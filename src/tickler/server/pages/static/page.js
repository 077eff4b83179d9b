// On every page: times in the chosen zone, and a question before a change that cannot be undone.
import { askBefore } from "./tickler/confirm.js";
import { forgetNotice } from "./tickler/notice.js";
import { showTimes } from "./time.js";

/** Set up a page, or a part of it that was replaced. */
export function prepare(root) {
  showTimes(root);
  askBefore(root);

  for (const part of root.querySelectorAll("[data-latest]")) {
    const ends = [...part.querySelectorAll(part.dataset.latest)].map((each) => each.getBoundingClientRect().right);
    part.scrollLeft = Math.max(...ends) - part.getBoundingClientRect().right + 60; // scroll the latest into view, with a margin
  }
}

prepare(document);
forgetNotice();
