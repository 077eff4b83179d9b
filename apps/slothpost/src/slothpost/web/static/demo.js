// The tour stays closed once it was closed. Not a module: it runs before the page is shown.
for (const tour of document.querySelectorAll("[data-remember]")) {
  const name = `slothpost-${tour.dataset.remember}`;
  try {
    tour.open = localStorage.getItem(name) !== "closed";
    tour.addEventListener("toggle", () => localStorage.setItem(name, tour.open ? "open" : "closed"));
  } catch {
    // without storage it is open each time
  }
}
