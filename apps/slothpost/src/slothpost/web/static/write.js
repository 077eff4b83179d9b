// The form of a post that is written by hand: its length and its price while it is typed.
import { afterTyping } from "./typing.js";

const form = document.querySelector("form[data-check]");

async function check() {
  const fields = new URLSearchParams(new FormData(form));
  const answer = await fetch(form.dataset.check, { method: "POST", body: fields, headers: { "x-fragment": "1", accept: "text/html" } });
  if (answer.ok && !answer.redirected) {
    const parts = new DOMParser().parseFromString(await answer.text(), "text/html").body;
    form.querySelector('[data-part="check"]').replaceChildren(...parts.childNodes);
  }
}

if (form) {
  afterTyping(form.elements.text, check);
  form.elements.channel.addEventListener("change", () => check().catch(() => {}));
}
