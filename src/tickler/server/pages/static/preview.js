// The form: the next ten fires of what is being typed, and what is wrong with it.

const when = document.getElementById("when");
const tz = document.getElementById("tz");
const list = document.getElementById("preview");
const words = document.getElementById("preview-words");
const days = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
let timer = 0;
let asked = 0;

async function show() {
  const mine = ++asked;
  const query = new URLSearchParams({ when: when.value, tz: tz.value || "UTC", n: "10" });
  const answer = await fetch(`/v1/preview?${query}`, { headers: { accept: "application/json" } });
  const found = await answer.json();
  if (mine !== asked) return;
  const fits = answer.ok;
  when.toggleAttribute("aria-invalid", !fits);
  list.replaceChildren();
  words.className = fits ? "words" : "error";
  words.textContent = fits ? found.words ?? "" : found.detail;
  for (const each of fits ? found.next : []) {
    const item = document.createElement("li");
    const at = each.at;
    const day = days[new Date(`${at.slice(0, 10)}T12:00:00Z`).getUTCDay()];
    item.textContent = `${day} ${at.slice(0, 10)} ${at.slice(11, 19)} ${at.slice(19).replace(/^\.\d+/, "")}`;
    for (const mark of each.marks) {
      item.append(Object.assign(document.createElement("span"), { className: "mark", textContent: ` ${mark}` }));
    }
    list.append(item);
  }
  if (fits && !found.next.length) words.textContent = "It never fires again: no instant is left.";
}

function soon() {
  clearTimeout(timer);
  timer = setTimeout(() => show().catch(() => {}), 200);
}

when.addEventListener("input", soon);
tz.addEventListener("input", soon);
for (const example of document.querySelectorAll(".example")) {
  example.addEventListener("click", () => {
    when.value = example.textContent;
    soon();
  });
}
if (document.querySelector("[data-new]")) tz.value = Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";
soon();
