// Sends the forms of a page in the background, and returns the part of the page that the server answers with.

/** Send a form, and return the answer's status and its elements. Throws if nothing answered. */
export async function send(form, submitter = null) {
  const fields = new URLSearchParams(new FormData(form));
  if (submitter?.name) fields.set(submitter.name, submitter.value);
  return read(await fetch(form.action, { method: "POST", body: fields, headers: { "x-fragment": "1", accept: "text/html" } }));
}

/** Get a part of a page. */
export async function get(path) {
  return read(await fetch(path, { headers: { "x-fragment": "1", accept: "text/html" } }));
}

async function read(answer) {
  if (answer.redirected) location.reload(); // signed out meanwhile
  const text = await answer.text();
  return { status: answer.status, ok: answer.ok, parts: new DOMParser().parseFromString(text, "text/html").body };
}
