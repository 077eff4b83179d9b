// Cards: decisions are sent in the background, shown at once, and corrected by what the server answers. All of it has keys.
import { prepare } from "./page.js";
import { get, send } from "./send.js";
import { afterTyping, replaceParts } from "./typing.js";

const FOLLOW_MS = 1_000;
const COUNT_MS = 30_000;
const DOING = {
  approve: "Approving…", unapprove: "Taking the approval back…", edit: "Saving…", regenerate: "Drafting anew…", snooze: "Snoozing…",
  reject: "Rejecting…", restore: "Restoring…", "post-now": "Posting…", "next-slot": "Moving…", move: "Moving…",
  "went-out": "Saving…", "send-again": "Sending again…",
};
const LEAVES = new Set(["approve", "snooze", "reject", "post-now"]); // the next card has the focus then
const UNDOES = ["unapprove", "restore"];
const queue = document.getElementById("queue");
const said = document.getElementById("said");
const isQueue = !("page" in queue.dataset);
const view = isQueue ? "queue" : "page";
const decided = []; // the ids of posts that were decided here, the latest last

const cards = () => [...queue.querySelectorAll("article.post")];
const open = () => cards().filter((card) => !card.classList.contains("is-compact"));
const cardOf = (element) => element?.closest("article.post");
const current = () => cardOf(document.activeElement) ?? open()[0] ?? null;

function say(text) {
  said.textContent = text;
}

function focusOn(card) {
  if (!card) return;
  card.focus({ preventScroll: true });
  card.scrollIntoView({ block: "nearest", behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth" });
}

/** Put the card of an answer into the place of the one that is shown. */
function replace(card, parts) {
  const fresh = parts.querySelector("article.post");
  if (!fresh) return location.reload();
  const hadFocus = card.contains(document.activeElement);
  card.replaceWith(fresh);
  prepare(fresh); // first, so that its question is asked before the form is sent
  equip(fresh);
  if (hadFocus) fresh.focus({ preventScroll: true });
  return fresh;
}

async function decide(form, submitter) {
  const card = cardOf(form) ?? document.getElementById(`post-${form.dataset.of}`);
  const name = form.dataset.decision === "edit" && submitter?.value === "approve" ? "approve" : form.dataset.decision;
  const place = open().indexOf(card); // -1: it was decided before, and somebody watches what becomes of it
  const next = place < 0 ? null : open()[place + 1] ?? open()[place - 1];
  card.classList.add("is-saving");
  card.setAttribute("aria-busy", "true");
  for (const sheet of card.querySelectorAll(":popover-open")) sheet.hidePopover();
  say(DOING[name] ?? "Saving…");
  if (isQueue && LEAVES.has(name) && next) focusOn(next);
  try {
    const { ok, parts } = await send(form, { submitter, view });
    const fresh = replace(card, parts);
    if (!ok) {
      say(`That did not work: ${fresh.querySelector('[role="alert"]')?.textContent ?? "try again"}`);
      (fresh.querySelector('[aria-invalid="true"]') ?? fresh).focus();
    } else {
      decided.push(fresh.dataset.post);
      say(fresh.querySelector(".outcome")?.textContent ?? "Saved.");
    }
  } catch {
    card.classList.remove("is-saving");
    card.removeAttribute("aria-busy");
    const error = Object.assign(document.createElement("p"), { className: "error", textContent: "Nothing answered, so nothing is certain: reload the page to see what was saved." });
    error.setAttribute("role", "alert");
    card.querySelector(".post-head").after(error);
    focusOn(card);
  }
  showCount();
}

/** Set up one card. */
function equip(card) {
  for (const form of card.querySelectorAll("form[data-decision]")) {
    form.addEventListener("submit", (event) => {
      if (event.defaultPrevented) return; // the question before it was answered with no
      event.preventDefault();
      decide(form, event.submitter);
    });
  }
  const edit = card.querySelector("details[data-edit]");
  const text = edit?.querySelector("textarea");
  if (text) {
    const saved = text.defaultValue;
    edit.addEventListener("toggle", () => edit.open && text.focus());
    edit.querySelector("[data-cancel]").addEventListener("click", (event) => {
      event.preventDefault();
      text.value = saved;
      text.dispatchEvent(new Event("input"));
      edit.open = false;
      card.focus({ preventScroll: true });
    });
    afterTyping(text, async () => {
      const { ok, parts } = await send(text.form, { to: text.dataset.check });
      if (ok) replaceParts(card, parts);
    });
    text.addEventListener("keydown", (event) => {
      if (event.key === "Escape") {
        edit.open = false;
        if (text.value !== saved) say("The text is not saved yet.");
        card.focus();
      } else if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
        text.form.requestSubmit(text.form.querySelector("button.main"));
      }
    });
  }
  if ("follow" in card.dataset) follow(card);
}

/** Show what becomes of a post that goes out now. */
function follow(card) {
  setTimeout(async () => {
    if (!card.isConnected) return;
    const answer = document.hidden ? null : await get(`/posts/${card.dataset.post}`, view).catch(() => null);
    const isInUse = card.querySelector(":popover-open, textarea:focus, input:focus");
    if (!answer?.ok || !card.isConnected || isInUse) return follow(card);
    const fresh = replace(card, answer.parts);
    if (fresh && fresh.dataset.state !== card.dataset.state) say(fresh.querySelector(".outcome")?.textContent ?? "");
  }, FOLLOW_MS);
}

async function showCount() {
  const answer = await fetch("/review/count").catch(() => null);
  if (!answer?.ok || answer.redirected) return;
  const count = Number(await answer.text());
  for (const badge of document.querySelectorAll("[data-review-count]")) {
    badge.textContent = count;
    badge.hidden = count === 0;
  }
  const shown = open().length;
  if (isQueue && count > shown && !queue.querySelector("[rel=next]")) offerReload(count - shown);
}

/** New drafts do not push away what somebody reads: they wait behind a button. */
function offerReload(count) {
  const button = document.querySelector(".toast") ?? Object.assign(document.createElement("button"), { type: "button", className: "main toast" });
  button.textContent = count === 1 ? "1 new draft" : `${count} new drafts`;
  button.onclick = () => location.reload();
  document.body.append(button);
}

function press(card, name) {
  const form = [...(card?.querySelectorAll(`form[data-decision="${name}"]`) ?? [])][0];
  if (!form) return say("This cannot be done with this post.");
  if (form.querySelector("button").disabled) return say(card.querySelector(".problem")?.textContent ?? "This cannot be done now.");
  form.requestSubmit();
}

function showSheet(card, name) {
  const sheet = card && document.getElementById(`${name}-${card.dataset.post}`);
  if (!sheet) return say("This cannot be done with this post.");
  focusOn(card);
  sheet.showPopover();
}

function startEditing(card) {
  const edit = card?.querySelector("details[data-edit]");
  if (!edit) return say("This cannot be done with this post.");
  edit.open = true;
}

function move(by) {
  const all = cards();
  const at = all.indexOf(cardOf(document.activeElement));
  focusOn(all[at < 0 ? 0 : Math.min(Math.max(at + by, 0), all.length - 1)]);
}

function undo() {
  const own = cardOf(document.activeElement);
  const ids = [own?.dataset.post, ...[...decided].reverse()];
  for (const id of ids) {
    const card = id && document.getElementById(`post-${id}`);
    const form = card && UNDOES.map((name) => card.querySelector(`form[data-decision="${name}"]`)).find(Boolean);
    if (form) {
      focusOn(card);
      return form.requestSubmit();
    }
  }
  say("There is nothing to undo.");
}

const KEYS = {
  j: () => move(1), k: () => move(-1), a: () => press(current(), "approve"), e: () => startEditing(current()),
  r: () => showSheet(current(), "regenerate"), s: () => showSheet(current(), "snooze"), x: () => press(current(), "reject"),
  n: () => press(current(), "post-now"), u: undo, "?": () => document.getElementById("keys")?.togglePopover(),
};

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat && !"jk".includes(event.key)) return;
  if (event.target.closest?.("input, textarea, select, [popover]") || !(event.key in KEYS)) return;
  event.preventDefault();
  KEYS[event.key]();
});

for (const card of cards()) equip(card);
if (isQueue) {
  setInterval(() => document.hidden || showCount(), COUNT_MS);
  document.addEventListener("visibilitychange", () => document.hidden || showCount());
}
