// Sends the forms of a page in the background, and returns the part of the page that the server answers with.

/** Headers that ask for a part of a page. `view` says for which page: a decided post is one line in the queue. */
const headersFor = (view) => ({ "x-fragment": view, accept: "text/html" });

/** Send a form, and return the status and the elements of the answer. Throws if nothing answered. */
export async function send(form, { submitter = null, view = "page", to = form.action } = {}) {
  const fields = new URLSearchParams(new FormData(form));
  if (submitter?.name) fields.set(submitter.name, submitter.value);
  return read(await fetch(to, { method: "POST", body: fields, headers: headersFor(view) }));
}

/** Get a part of a page. */
export async function get(path, view = "page") {
  return read(await fetch(path, { headers: headersFor(view) }));
}

async function read(answer) {
  if (answer.redirected) location.reload(); // signed out meanwhile
  const text = await answer.text();
  return { ok: answer.ok && !answer.redirected, parts: new DOMParser().parseFromString(text, "text/html").body };
}
