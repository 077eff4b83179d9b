// The form: previews the next ten fires of what is typed, and shows its errors.
import { byId, element } from "./tickler/element.js";
import { formatTime, minutesOf, onZoneChange, showTime, zoneName } from "./time.js";

const [when, tz, kind, to, hint] = byId("when", "tz", "kind", "to", "to-hint");
const [list, words] = byId("preview", "preview-words");
const [warning] = byId("to-warning"); // why the service would refuse to deliver there
let timer = 0;
let requests = 0;

/** Mark the field at fault, if any, and let the words below describe it. Errors of the submitted form stay. */
function markInvalid(name) {
  for (const field of [when, tz].filter((each) => !document.getElementById(`${each.id}-error`))) {
    if (field.id === name) field.setAttribute("aria-invalid", "true");
    else field.removeAttribute("aria-invalid");
    const hint = document.getElementById(`${field.id}-hint`)?.id ?? "";
    field.setAttribute("aria-describedby", field.id === name ? words.id : hint);
  }
}

function item({ at, local, marks }) {
  const ms = new Date(at).getTime();
  const time = element("time");
  showTime(time, ms, minutesOf(local)); // the server knows the offset, also of zones that the browser does not know
  const isElsewhere = zoneName(ms) !== zoneName(ms, minutesOf(local));
  const here = isElsewhere ? [element("small", {}, ` (${formatTime(ms)} ${zoneName(ms)})`)] : [];
  return element("li", {}, time, ...here, ...marks.map((mark) => element("span", { className: "mark" }, ` ${mark}`)));
}

async function preview() {
  const mine = ++requests;
  const query = new URLSearchParams({ when: when.value, tz: tz.value || "UTC", n: "10" });
  if (kind.value === "http" && to.value) query.set("target", to.value);
  const response = await fetch(`/v1/preview?${query}`, { headers: { accept: "application/json" } });
  const found = await response.json();
  if (mine !== requests) return;
  markInvalid(response.ok ? null : found.field === "tz" ? "tz" : "when");
  words.className = response.ok ? "words" : "error";
  words.textContent = !response.ok ? found.detail : found.next.length ? found.words ?? "" : "No upcoming fires.";
  warning.textContent = response.ok ? (found.warnings ?? []).map((each) => `${each[0].toUpperCase()}${each.slice(1)}.`).join(" ") : "";
  list.replaceChildren(...(response.ok ? found.next : []).map(item));
}

function previewSoon() {
  clearTimeout(timer);
  timer = setTimeout(() => preview().catch(() => {}), 200);
}

for (const field of [when, tz]) {
  field.addEventListener("input", () => {
    document.getElementById(`${field.id}-error`)?.remove();
    field.closest(".field").classList.remove("wrong");
    previewSoon();
  });
}
document.querySelector(".examples").hidden = false;
for (const example of document.querySelectorAll(".example")) {
  example.addEventListener("click", () => {
    when.value = example.textContent;
    previewSoon();
  });
}
to.addEventListener("input", previewSoon);
onZoneChange(previewSoon);
if (document.querySelector("[data-new]")) tz.value = Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";
preview().catch(() => {});

// The field of the target: its label follows the kind, and kinds without a value hide it.
const KINDS = { http: ["URL", "We POST each fire here"], python: ["Handler name", hint?.textContent ?? ""] };

function showTarget() {
  const [label, text] = KINDS[kind.value] ?? ["", ""];
  to.closest(".field").hidden = !label;
  if (label) to.labels[0].textContent = label;
  if (hint) hint.textContent = text;
}

kind.addEventListener("change", () => {
  previewSoon();
  if (to.value.includes("://") !== (kind.value === "http")) to.value = "";
  showTarget();
});
showTarget();
