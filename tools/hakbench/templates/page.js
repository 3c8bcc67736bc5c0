"use strict";
// Charts are drawn when they come near, in the ink of the page, and again when that changes.
const dark = matchMedia("(prefers-color-scheme: dark)");
const ink = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const inks = () => ({
  "font.color": ink("--ink"),
  "xaxis.gridcolor": ink("--rule"), "yaxis.gridcolor": ink("--rule"),
  "xaxis.linecolor": ink("--rule"), "yaxis.linecolor": ink("--rule"),
});
const drawn = new Set();
function emphasize(plot) {
  const name = document.body.dataset.picked;
  Plotly.restyle(plot, { opacity: plot.data.map((one) => !name || one.name === name ? 1 : 0.15) });
}
// Beside points {x, y, wide} of a chart: where the name of each covers no other name and no point.
function namePlaces(points) {
  const reach = 9, high = 17;
  const covers = (a, b) => a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3];
  const taken = points.map(({ x, y }) => [x - reach, y - reach, x + reach, y + reach]);
  return points.map(({ x, y, wide }) => {
    const rows = { top: y - reach - high, bottom: y + reach, middle: y - high / 2 };
    const columns = { center: x - wide / 2, right: x + reach, left: x - reach - wide };
    const places = ["top center", "bottom center", "middle right", "middle left", "top right",
      "bottom right", "top left", "bottom left"].map((place) => {
      const [row, column] = place.split(" ");
      return { place, box: [columns[column], rows[row], columns[column] + wide, rows[row] + high] };
    });
    const free = places.find(({ box }) => !taken.some((other) => covers(box, other))) ?? places[0];
    taken.push(free.box);
    return free.place;
  });
}
function placeNames(plot) {
  const { xaxis, yaxis } = plot._fullLayout;
  if (plot.data.some((one) => one.mode !== "markers+text")) return null;
  return Plotly.restyle(plot, { textposition: namePlaces(plot.data.map((one) => (
    { x: xaxis.d2p(one.x[0]), y: yaxis.d2p(one.y[0]), wide: 8 * one.text[0].length }))) });
}
function draw(plot) {
  const figure = JSON.parse(plot.parentElement.querySelector("script").textContent);
  Plotly.newPlot(plot, figure.data, figure.layout, { responsive: true, displayModeBar: false })
    .then(() => Plotly.relayout(plot, inks())).then(() => placeNames(plot))
    .then(() => emphasize(plot));
  drawn.add(plot);
}
const near = new IntersectionObserver((entries) => {
  for (const entry of entries) {
    if (!entry.isIntersecting) continue;
    near.unobserve(entry.target);
    draw(entry.target);
  }
}, { rootMargin: "600px" });
if (window.Plotly) {
  for (const plot of document.querySelectorAll(".plot")) {
    plot.replaceChildren();
    near.observe(plot);
  }
}
addEventListener("resize", () => drawn.forEach(placeNames));
dark.addEventListener("change", () => drawn.forEach((plot) => Plotly.relayout(plot, inks())));
// A press on an allocator leaves only it in full colour; a second press shows all again.
document.querySelector(".legend").addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (!button) return;
  const name = document.body.dataset.picked === button.dataset.pick ? "" : button.dataset.pick;
  if (name) document.body.dataset.picked = name;
  else delete document.body.dataset.picked;
  for (const one of document.querySelectorAll("button[data-pick]")) {
    one.setAttribute("aria-pressed", String(one.dataset.pick === name));
  }
  for (const one of document.querySelectorAll("main [data-a]")) {
    one.classList.toggle("picked", one.dataset.a === name);
  }
  drawn.forEach(emphasize);
});
