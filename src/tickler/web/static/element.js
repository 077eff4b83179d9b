/** Make an element with these properties and children. */
export function element(name, properties, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

/** Return the elements with these ids. */
export function byId(...ids) {
  return ids.map((id) => document.getElementById(id));
}
