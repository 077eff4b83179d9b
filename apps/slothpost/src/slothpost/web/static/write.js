// The form of a post that is written by hand: its length and its price while it is typed.
import { send } from "./send.js";
import { afterTyping } from "./typing.js";

const form = document.querySelector("form[data-check]");

async function check() {
  const { ok, parts } = await send(form, { to: form.dataset.check });
  if (ok) form.querySelector('[data-part="check"]').replaceChildren(...parts.childNodes);
}

if (form) {
  afterTyping(form.elements.text, check);
  form.elements.channel.addEventListener("change", () => check().catch(() => {}));
}
