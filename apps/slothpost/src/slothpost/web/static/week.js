// Drag a post to another day of its channel: it keeps its time. The same is in the sheet of each post, without dragging.
const table = document.querySelector("table.week");
let dragged = null;

const DAY_MS = 86_400_000;
const days = (from, to) => Math.round((Date.parse(to.dataset.day) - Date.parse(from.dataset.day)) / DAY_MS);

/** Return the cell under a drag, if the post may go there. */
function target(event) {
  const cell = event.target.closest("td[data-day]");
  return dragged && cell && cell.parentElement === dragged.closest("tr") && cell !== dragged.closest("td") ? cell : null;
}

function unmark() {
  for (const cell of table.querySelectorAll(".is-target")) cell.classList.remove("is-target");
}

async function move(post, by) {
  const fields = new URLSearchParams({ form_token: table.dataset.formToken, days: String(by) });
  const answer = await fetch(`/posts/${post}/move`, { method: "POST", body: fields, headers: { "x-fragment": "page", accept: "text/html" } });
  if (answer.ok) return location.reload();
  const parts = new DOMParser().parseFromString(await answer.text(), "text/html");
  document.getElementById("said").textContent = parts.querySelector('[role="alert"]')?.textContent ?? "The post was not moved.";
  document.getElementById("said").className = "error";
}

table?.addEventListener("dragstart", (event) => {
  dragged = event.target.closest?.("[data-post]");
  if (!dragged) return;
  dragged.classList.add("is-dragged");
  event.dataTransfer.effectAllowed = "move";
  event.dataTransfer.setData("text/plain", dragged.dataset.post);
});
table?.addEventListener("dragover", (event) => {
  unmark();
  const cell = target(event);
  if (!cell) return;
  event.preventDefault();
  cell.classList.add("is-target");
});
table?.addEventListener("drop", (event) => {
  const cell = target(event);
  if (!cell) return;
  event.preventDefault();
  move(dragged.dataset.post, days(dragged.closest("td"), cell)).catch(() => {});
});
table?.addEventListener("dragend", () => {
  unmark();
  dragged?.classList.remove("is-dragged");
  dragged = null;
});
