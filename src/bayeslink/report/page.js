"use strict";
document.body.classList.add("scripted");
const all = (selector, root = document) => [...root.querySelectorAll(selector)];

// What a mark says appears at once, beside the pointer.
const tip = document.getElementById("tip");
for (const mark of all(".bl-mark")) {
  const title = mark.querySelector("title");
  const words = title.textContent;
  title.remove(); // else the browser shows it too, later
  mark.addEventListener("pointermove", (event) => {
    tip.textContent = words;
    const x = event.clientX + 14, y = event.clientY + 16;
    const right = document.documentElement.clientWidth - tip.offsetWidth - 6;
    const below = y + tip.offsetHeight + 6 < window.innerHeight;
    tip.style.left = Math.max(6, Math.min(x, right)) + "px";
    tip.style.top = (below ? y : event.clientY - tip.offsetHeight - 8) + "px";
    tip.style.visibility = "visible";
  });
  mark.addEventListener("pointerleave", () => { tip.style.visibility = "hidden"; });
}

// Tables sort by the column whose head is pressed; a row for the rest stays last.
for (const table of all("table.sortable")) {
  const heads = all("th", table);
  heads.forEach((head, column) => {
    if (!head.classList.contains("n")) return; // words have no order
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") !== "descending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const key = (row) => Number(row.cells[column].dataset.value);
      const rows = all("tbody tr:not(.rest)", table);
      rows.sort((x, y) => (down ? key(y) - key(x) : key(x) - key(y)));
      table.tBodies[0].prepend(...rows);
    });
  });
}

// A menu shows the elements of its group that it names, or all of them.
for (const menu of all("select[data-group]")) {
  const show = () => {
    for (const element of all("[data-of='" + menu.dataset.group + "']")) {
      element.classList.toggle("off", menu.value !== "all" && element.dataset.key !== menu.value);
    }
  };
  menu.addEventListener("change", show);
  show();
}

// Folded sections: all at once, those on paper, and the one that a link leads to.
const folds = () => all("details");
const button = document.getElementById("open-all");
if (button) {
  button.addEventListener("click", () => {
    const open = !folds().every((fold) => fold.open);
    for (const fold of folds()) fold.open = open;
    button.textContent = open ? "Fold all" : "Open all";
  });
}
let opened = [];
addEventListener("beforeprint", () => {
  opened = folds().filter((fold) => !fold.open);
  for (const fold of opened) fold.open = true;
});
addEventListener("afterprint", () => { for (const fold of opened) fold.open = false; });
const follow = () => {
  const fold = document.querySelector(":target > details");
  if (fold) fold.open = true;
};
addEventListener("hashchange", follow);
follow();
