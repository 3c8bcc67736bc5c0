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
function draw(plot) {
  const figure = JSON.parse(plot.parentElement.querySelector("script").textContent);
  Plotly.newPlot(plot, figure.data, figure.layout, { responsive: true, displayModeBar: false })
    .then(() => Plotly.relayout(plot, inks())).then(() => emphasize(plot));
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
