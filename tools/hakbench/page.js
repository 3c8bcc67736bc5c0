"use strict";
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
  for (const one of document.querySelectorAll("[data-a]")) {
    one.classList.toggle("picked", one.dataset.a === name);
  }
});
