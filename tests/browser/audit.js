// Returns the faults of the page for people who use a screen reader, a keyboard or a phone.
() => {
  const faults = [];
  const all = (selector) => [...document.querySelectorAll(selector)];
  const isShown = (element) => element.checkVisibility({ visibilityProperty: true }) && element.getClientRects().length > 0;
  const shown = (selector) => all(selector).filter(isShown);
  const excerpt = (element) => element.outerHTML.replace(/\s+/g, " ").slice(0, 120);
  const textOf = (ids) => (ids ?? "").split(" ").map((id) => document.getElementById(id)?.textContent ?? "").join(" ").trim();

  function nameOf(element) {
    const labels = [...(element.labels ?? [])].map((label) => label.textContent).join(" ");
    const title = element.querySelector?.("title")?.textContent ?? "";
    return [element.getAttribute("aria-label"), textOf(element.getAttribute("aria-labelledby")), labels,
      element.getAttribute("alt"), element.textContent, title].map((text) => (text ?? "").trim()).find(Boolean) ?? "";
  }

  // The document.
  if (!document.documentElement.lang) faults.push("the page does not say its language");
  if (!/\S.* · (Tickler|Slothpost|Pricebook)$/.test(document.title)) faults.push(`the title is ${JSON.stringify(document.title)}`);
  for (const [name, number] of [["h1", 1], ["main", 1], ["body > header", 1], ["body > footer", 1]]) {
    if (shown(name).length !== number) faults.push(`${shown(name).length} times ${name}`);
  }
  if (shown("nav").some((nav) => !nav.getAttribute("aria-label"))) faults.push("nav has no name");
  const levels = shown("h1, h2, h3").map((heading) => Number(heading.tagName[1]));
  if (levels.some((level, number) => number && level > levels[number - 1] + 1)) faults.push(`headings leave out a level: ${levels}`);
  const ids = all("[id]").map((element) => element.id);
  const twice = ids.filter((id, number) => ids.indexOf(id) !== number);
  if (twice.length) faults.push(`ids come twice: ${twice}`);
  for (const attribute of ["aria-labelledby", "aria-describedby", "for", "list"]) {
    for (const element of all(`[${attribute}]`)) {
      for (const id of element.getAttribute(attribute).split(" ")) {
        if (!document.getElementById(id)) faults.push(`${attribute} leads nowhere: ${excerpt(element)}`);
      }
    }
  }

  // Controls and pictures have a name.
  const controls = shown("a[href], button, input:not([type=hidden]), select, textarea, summary");
  for (const element of controls) if (!nameOf(element)) faults.push(`has no name: ${excerpt(element)}`);
  for (const element of shown("svg, img, canvas")) {
    const hidden = element.closest("[aria-hidden=true]");
    const named = element.getAttribute("aria-label") || element.getAttribute("alt");
    if (!hidden && !(named && (element.tagName === "IMG" || element.getAttribute("role") === "img"))) {
      faults.push(`is a picture without words: ${excerpt(element)}`);
    }
    if (element.querySelector("a:not([tabindex='-1']), button, input")) faults.push(`has links inside a picture: ${excerpt(element)}`);
  }
  for (const table of shown("table")) if (!table.querySelector("th")) faults.push(`a table has no heads: ${excerpt(table)}`);
  for (const input of shown("[aria-invalid=true]")) {
    if (!textOf(input.getAttribute("aria-describedby"))) faults.push(`is wrong, and does not say why: ${excerpt(input)}`);
  }
  for (const form of all("form[method=post]")) {
    if (!form.elements.form_token?.value) faults.push(`a form has no token: ${excerpt(form)}`);
  }

  // Text is readable, and controls are large enough to touch.
  if (document.documentElement.scrollWidth > window.innerWidth) {
    const wide = shown("main *").filter((element) => element.getBoundingClientRect().right > window.innerWidth + 1 && !element.closest(".scroll"));
    faults.push(`is ${document.documentElement.scrollWidth} wide on a screen of ${window.innerWidth}: ${wide.slice(0, 3).map(excerpt)}`);
  }
  for (const card of shown("main > .card, main > .scroll")) {
    const next = card.nextElementSibling?.getBoundingClientRect();
    if (next?.height && next.top - card.getBoundingClientRect().bottom < 8) faults.push(`touches what comes next: ${excerpt(card)}`);
  }
  for (const element of shown("nav a, header button")) {
    if (element.getBoundingClientRect().right > window.innerWidth) faults.push(`lies outside the screen: ${excerpt(element)}`);
  }
  for (const element of controls) {
    const box = element.getBoundingClientRect();
    const isInText = element.matches("a:not(.button), summary, .example, input[type=checkbox]");
    if (!isInText && (box.height < 24 || box.width < 24)) faults.push(`is too small to touch: ${excerpt(element)}`);
  }

  const channels = (colour) => colour.match(/[\d.]+/g).map(Number);
  const light = (value) => (value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
  const luminance = (rgb) => [0.2126, 0.7152, 0.0722].reduce((sum, weight, n) => sum + weight * light(rgb[n] / 255), 0);

  function paper(element) {
    for (let each = element; each; each = each.parentElement) {
      const found = channels(getComputedStyle(each).backgroundColor);
      if (found[3] === undefined || found[3] === 1) return found;
    }
    return [255, 255, 255];
  }

  const seen = new Set();
  for (const element of shown("body *:not(svg *)")) {
    const words = [...element.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.data.trim());
    if (!words || element.closest(".sr, .skip")) continue;
    const style = getComputedStyle(element);
    const pair = [luminance(channels(style.color)), luminance(paper(element))].sort((a, b) => b - a);
    const ratio = (pair[0] + 0.05) / (pair[1] + 0.05);
    const isLarge = parseFloat(style.fontSize) >= 24 || (parseFloat(style.fontSize) >= 18.66 && Number(style.fontWeight) >= 700);
    const kind = `${element.tagName}.${element.className} ${style.color}`;
    if (ratio < (isLarge ? 3 : 4.5) && !seen.has(kind)) {
      seen.add(kind);
      faults.push(`is hard to read, ${ratio.toFixed(2)} to 1: ${excerpt(element)}`);
    }
  }
  return faults;
}
