// The form: the next ten fires of what is being typed, there and here, and what is wrong with it.

const when = document.getElementById("when");
const tz = document.getElementById("tz");
const list = document.getElementById("preview");
const words = document.getElementById("preview-words");
const kind = document.getElementById("kind");
const to = document.getElementById("to");
const warning = document.getElementById("to-warning"); // what the service would refuse to deliver to
const days = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
const here = new Intl.DateTimeFormat(undefined, { weekday: "short", hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
let timer = 0;
let asked = 0;

function say(text, name, className) {
  return Object.assign(document.createElement(name), { className, textContent: text });
}

/** Which field is at fault, if any: it says so itself, and the words below tell why. What was said to what was sent stays. */
function blame(name) {
  for (const field of [when, tz].filter((each) => !document.getElementById(`${each.id}-error`))) {
    if (field.id === name) field.setAttribute("aria-invalid", "true");
    else field.removeAttribute("aria-invalid");
    const hint = document.getElementById(`${field.id}-hint`)?.id ?? "";
    field.setAttribute("aria-describedby", field.id === name ? words.id : hint);
  }
}

function item({ at, local, marks }) {
  const there = `${local.slice(0, 10)} ${local.slice(11, 19)} ${local.slice(19).replace(/^\.\d+/, "")}`;
  const found = say(`${days[new Date(`${local.slice(0, 10)}T12:00:00Z`).getUTCDay()]} ${there}`, "li", "");
  const viewer = new Date(at);
  if (-viewer.getTimezoneOffset() !== minutes(local)) found.append(say(` ${here.format(viewer)} here`, "small", ""));
  for (const mark of marks) found.append(say(` ${mark}`, "span", "mark"));
  return found;
}

function minutes(local) {
  const [, sign, hours, rest] = local.match(/([+-])(\d\d):(\d\d)$/) ?? [0, "+", 0, 0];
  return Number(`${sign}1`) * (Number(hours) * 60 + Number(rest));
}

async function show() {
  const mine = ++asked;
  const query = new URLSearchParams({ when: when.value, tz: tz.value || "UTC", n: "10" });
  if (kind.value === "http" && to.value) query.set("target", to.value);
  const answer = await fetch(`/v1/preview?${query}`, { headers: { accept: "application/json" } });
  const found = await answer.json();
  if (mine !== asked) return;
  blame(answer.ok ? null : found.field === "tz" ? "tz" : "when");
  words.className = answer.ok ? "words" : "error";
  words.textContent = !answer.ok ? found.detail : found.next.length ? found.words ?? "" : "It never fires again: no instant is left.";
  warning.textContent = answer.ok ? (found.warnings ?? []).map((each) => `${each[0].toUpperCase()}${each.slice(1)}.`).join(" ") : "";
  list.replaceChildren(...(answer.ok ? found.next : []).map(item));
}

function soon() {
  clearTimeout(timer);
  timer = setTimeout(() => show().catch(() => {}), 200);
}

for (const field of [when, tz]) {
  field.addEventListener("input", () => {
    document.getElementById(`${field.id}-error`)?.remove();
    field.closest(".field").classList.remove("wrong");
    soon();
  });
}
document.querySelector(".examples").hidden = false;
for (const example of document.querySelectorAll(".example")) {
  example.addEventListener("click", () => {
    when.value = example.textContent;
    soon();
  });
}
to.addEventListener("input", soon);
if (document.querySelector("[data-new]")) tz.value = Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";
show().catch(() => {});

// The target: its field is named for its kind, and not there where nothing is to be said.
const hint = document.getElementById("to-hint");
const KINDS = { http: ["URL", "it is sent there by POST"], python: ["The handler's name", hint?.textContent ?? ""] };

function showTarget() {
  const [label, says] = KINDS[kind.value] ?? ["", ""];
  to.closest(".field").hidden = !label;
  if (label) to.labels[0].textContent = label;
  if (hint) hint.textContent = says;
}

kind.addEventListener("change", () => {
  soon();
  if (to.value.includes("://") !== (kind.value === "http")) to.value = "";
  showTarget();
});
showTarget();
