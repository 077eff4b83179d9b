/** Ask before each form below an element whose change cannot be undone: `<form data-ask="…">`. The form then says `confirmed`. */
export function askBefore(root) {
  for (const form of root.querySelectorAll("form[data-ask]")) {
    form.addEventListener("submit", (event) => {
      if (!window.confirm(form.dataset.ask)) event.preventDefault();
      else form.append(Object.assign(document.createElement("input"), { type: "hidden", name: "confirmed", value: "yes" }));
    });
  }
}
