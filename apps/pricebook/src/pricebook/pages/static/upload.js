// Sends a file as it is, with a bar that shows how far it is. Without a script, lines are pasted into the form instead.
import { byId } from "./tickler/element.js";

const [form, drop, paste, input, chosen, send, bar, sent, problem] = byId(
  "upload", "drop", "paste", "file", "chosen", "send", "sending", "sent", "problem");
const NDJSON = /\.(ndjson|jsonl)$/i;
let file = null;

function choose(found) {
  if (!found) return;
  file = found;
  chosen.textContent = `${file.name}, ${file.size.toLocaleString("en")} bytes`;
  form.elements.format.value = NDJSON.test(file.name) ? "ndjson" : "csv";
  if (!form.elements.title.value) form.elements.title.value = file.name.replace(/\.[^.]*$/, "");
  drop.classList.add("is-chosen");
  problem.hidden = true;
}

/** Show what is wrong, and let somebody send it again. */
function fail(words) {
  problem.textContent = words;
  problem.hidden = false;
  bar.hidden = true;
  send.disabled = false;
}

function start() {
  const fields = new URLSearchParams();
  for (const [name, value] of new FormData(form)) {
    if (!["form_token", "text"].includes(name) && typeof value === "string") fields.set(name, value);
  }
  const request = new XMLHttpRequest(); // unlike fetch, it says how much is sent
  request.open("POST", `/uploads/file?${fields}`);
  request.responseType = "json";
  request.setRequestHeader("x-form-token", form.elements.form_token.value);
  request.setRequestHeader("content-type", "application/octet-stream");
  request.setRequestHeader("accept", "application/json");
  request.upload.onprogress = (event) => {
    sent.value = event.total ? event.loaded / event.total : 0;
  };
  request.onload = () => {
    if (request.status === 201) location.assign(request.response.location);
    else fail(request.response?.detail ?? "The file was not taken: try again.");
  };
  request.onerror = () => fail("Nothing answered: try again.");
  bar.hidden = false;
  sent.value = 0;
  send.disabled = true;
  problem.hidden = true;
  request.send(file);
}

if (form) {
  drop.hidden = false;
  paste.hidden = true;
  input.addEventListener("change", () => choose(input.files[0]));
  for (const name of ["dragenter", "dragover"]) {
    drop.addEventListener(name, (event) => {
      event.preventDefault();
      drop.classList.add("is-target");
    });
  }
  for (const name of ["dragleave", "drop"]) drop.addEventListener(name, () => drop.classList.remove("is-target"));
  drop.addEventListener("drop", (event) => {
    event.preventDefault();
    choose(event.dataTransfer.files[0]);
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (file) start();
    else fail("Choose a file first.");
  });
}
