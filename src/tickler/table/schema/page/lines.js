// Draws a line from each attribute to the keys that it is part of, and a dashed one to the conditions that it decides.
(() => {
  const SVG = "http://www.w3.org/2000/svg";
  const wirings = [...document.querySelectorAll(".wiring")].map((wiring) => {
    const svg = wiring.appendChild(document.createElementNS(SVG, "svg"));
    svg.setAttribute("aria-hidden", "true");
    return { wiring, svg, lines: connect(wiring, svg) };
  });

  function connect(wiring, svg) {
    const lines = [];
    for (const end of wiring.querySelectorAll("[data-from]")) {
      const colour = end.closest(".made").className.match(/c\d/)[0];
      for (const name of end.dataset.from.split(" ")) {
        const start = wiring.querySelector(`[data-attribute="${name}"]`);
        const path = svg.appendChild(document.createElementNS(SVG, "path"));
        const dot = svg.appendChild(document.createElementNS(SVG, "circle"));
        path.setAttribute("class", `${colour} ${end.dataset.kind}`);
        dot.setAttribute("class", colour);
        dot.setAttribute("r", 3);
        lines.push({ start, end, path, dot });
      }
    }
    const light = (chosen) => {
      wiring.classList.toggle("lit", chosen !== null);
      for (const { start, end, path, dot } of lines) {
        const on = chosen === start || chosen === end;
        path.classList.toggle("on", on);
        dot.classList.toggle("on", on);
      }
    };
    for (const each of new Set(lines.flatMap(({ start, end }) => [start, end]))) {
      each.addEventListener("pointerenter", () => light(each));
      each.addEventListener("pointerleave", () => light(null));
    }
    return lines;
  }

  function draw() {
    for (const { wiring, svg, lines } of wirings) {
      const box = wiring.getBoundingClientRect();
      svg.setAttribute("viewBox", `0 0 ${box.width} ${box.height}`);
      for (const { start, end, path, dot } of lines) {
        const from = start.getBoundingClientRect();
        const to = end.getBoundingClientRect();
        const [x1, y1] = [from.right - box.left, from.top + from.height / 2 - box.top];
        const [x2, y2] = [to.left - box.left - 3, to.top + to.height / 2 - box.top];
        const bend = (x2 - x1) * 0.5;
        path.setAttribute("d", `M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}`);
        dot.setAttribute("cx", x2);
        dot.setAttribute("cy", y2);
      }
    }
  }

  draw();
  const observer = new ResizeObserver(draw); // the window, its zoom, or the fonts may change
  for (const { wiring } of wirings) observer.observe(wiring);
  addEventListener("beforeprint", draw);
})();
