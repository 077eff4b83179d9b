// The wizard waits for the first delivery, and turns green.
const POLL_MS = 1_000;
const place = document.querySelector("[data-waits-for]");

async function look() {
  const answer = document.hidden ? null : await fetch(place.dataset.waitsFor, { headers: { accept: "application/json" } }).catch(() => null);
  if (answer?.ok && !answer.redirected && (await answer.json()).is_live) {
    place.classList.add("is-live");
    place.querySelector("p").textContent = place.dataset.live;
    document.querySelector("[data-when-live]")?.removeAttribute("hidden");
    return;
  }
  setTimeout(look, POLL_MS);
}

if (place && !place.classList.contains("is-live")) setTimeout(look, POLL_MS);
