// The form of a change set: shows the field that belongs to the choice, and hides the others.
for (const group of document.querySelectorAll("[data-when]")) {
  const choice = group.querySelector("select");
  const show = () => {
    for (const field of group.querySelectorAll("[data-for]")) field.hidden = field.dataset.for !== choice.value;
  };
  choice.addEventListener("change", show);
  show();
}
