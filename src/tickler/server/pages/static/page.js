// On every page: times in the chosen zone, and a question before a change that cannot be undone.
import { showTimes } from "./time.js";

/** Set up a page, or a part of it that was replaced. */
export function prepare(root) {
  showTimes(root);

  for (const part of root.querySelectorAll("[data-latest]")) {
    const ends = [...part.querySelectorAll(part.dataset.latest)].map((each) => each.getBoundingClientRect().right);
    part.scrollLeft = Math.max(...ends) - part.getBoundingClientRect().right + 60; // scroll the latest into view, with a margin
  }

  for (const form of root.querySelectorAll("form[data-ask]")) {
    form.addEventListener("submit", (event) => {
      if (!window.confirm(form.dataset.ask)) event.preventDefault();
      else form.append(Object.assign(document.createElement("input"), { type: "hidden", name: "confirmed", value: "yes" }));
    });
  }
}

/** Remove the notice from the address, so that a reload does not show it again. */
function forgetNotice() {
  const query = location.search.slice(1).split("&").filter(Boolean);
  const kept = query.filter((each) => !each.startsWith("notice="));
  if (kept.length < query.length) {
    history.replaceState(history.state, "", location.pathname + (kept.length ? `?${kept.join("&")}` : "") + location.hash);
  }
}

prepare(document);
forgetNotice();
