// Cases of people: which of these records are of one person?

import { cell, count, element, plain, probability, signed, value } from "/draw.js";

const OPEN = "?"; // in place of a person: not known who it is

/** What a person of a case is called on the page: A is that of the first record. */
const letter = (person) => (person === OPEN ? OPEN : letters(Number(person) - 1));
const letters = (k) => (k < 26 ? "" : letters(Math.floor(k / 26) - 1)) + String.fromCharCode(65 + (k % 26));

// --- who is who ----------------------------------------------------------------------------------

/** People after some records were said to be one person (link), another (nonlink), or unsure. */
export function saidOf(people, places, verdict) {
  const apart = `new ${people.length}`;
  if (verdict === "unsure") return numbered(people.map((who, k) => (places.includes(k) ? OPEN : who)));
  if (verdict === "nonlink") return numbered(people.map((who, k) => (places.includes(k) ? apart : who)));
  const named = new Set(places.map((k) => people[k]).filter((who) => who !== OPEN));
  const one = [...named][0] ?? apart; // who goes with one of them goes with all
  return numbered(people.map((who, k) => (places.includes(k) || named.has(who) ? one : who)));
}

/** "1", "2", … in the order in which they come. */
function numbered(people) {
  const names = [...new Set(people.filter((who) => who !== OPEN))];
  return people.map((who) => (who === OPEN ? OPEN : String(names.indexOf(who) + 1)));
}

export const allOne = (people) => people.map(() => "1");
export const allApart = (people) => people.map((_, k) => String(k + 1));

/** "A is 1 2, B is 3; unsure: 4". */
export function inWords(people) {
  const of = (who) => people.flatMap((one, k) => (one === who ? [k + 1] : [])).join(" ");
  const known = [...new Set(people)].filter((who) => who !== OPEN);
  const parts = known.map((who) => `${letter(who)} is ${of(who)}`).join(", ");
  return [parts, people.includes(OPEN) ? `unsure: ${of(OPEN)}` : ""].filter(Boolean).join("; ");
}

export function question(found) {
  const people = new Set(found).size;
  const records = `${count(found.length)} records`;
  return people === 1
    ? `The run takes these ${records} for one person. Is that so?`
    : `The run takes these ${records} for ${people} people. Who is who?`;
}

// --- what is seen ----------------------------------------------------------------------------------

/** The records of a case side by side: fields are rows. */
export function recordTable({ records, fields }, tick) {
  const table = element("table", { classes: "group", role: "table", "aria-label": `${records.length} records` });
  const head = element("tr", { role: "row" });
  head.append(element("th", { scope: "col", role: "columnheader", classes: "corner" },
    element("span", { classes: "unseen", text: "Field" })));
  for (const { place, id, file } of records) {
    head.append(element("th", { scope: "col", role: "columnheader", "data-place": place },
      element("span", { classes: "side" }, element("b", { text: place + 1 }), file ? value(file) : "",
        element("span", { classes: "unseen", text: " person" }), element("i", { classes: "person" })), value(id)));
  }
  const body = element("tbody", { role: "rowgroup" });
  fields.forEach((field, row) => {
    const label = element("th", { scope: "row", role: "rowheader" }, value(field.name));
    if (!field.compared) label.append(element("small", { text: " not compared" }));
    const line = element("tr", { role: "row", "data-row": row }, label);
    for (const { place, cells } of records) {
      line.append(cell(cells[row], { "data-place": place, "data-label": place + 1 }));
    }
    body.append(line);
  });
  const who = element("tr", { role: "row", classes: "verdicts" },
    element("th", { scope: "row", role: "rowheader", text: "Person" }));
  for (const { place, id } of records) {
    const button = element("button", { type: "button", classes: "tick", "aria-pressed": "false",
      "aria-label": `Tick record ${place + 1}, ${plain(id)}`, text: "Tick" });
    button.addEventListener("click", () => tick(place));
    who.append(element("td", { role: "cell", "data-place": place, "data-label": place + 1 },
      element("div", { classes: "who" }, element("b", { classes: "person" }), button)));
  }
  body.append(who);
  table.append(element("thead", { role: "rowgroup" }, head), body);
  return table;
}

/** Bring the people and ticks that are seen in line with what is known. */
export function markPeople(root, people, ticked) {
  for (const box of root.querySelectorAll(".verdicts td[data-place]")) {
    const place = Number(box.dataset.place);
    box.querySelector(".tick").setAttribute("aria-pressed", String(ticked.has(place)));
  }
  for (const badge of root.querySelectorAll(".person")) {
    const who = people[Number(badge.closest("[data-place]").dataset.place)];
    badge.textContent = letter(who);
    badge.dataset.person = who;
  }
  for (const head of root.querySelectorAll("thead [data-place]")) {
    head.classList.toggle("ticked", ticked.has(Number(head.dataset.place)));
  }
}

/** What the run says of each record, in its column, and what others judged. */
export function showDoubt(found, root) {
  found.records.forEach((one, place) => {
    const box = root.querySelector(`.verdicts td[data-place="${place}"]`);
    const beside = one.with.map((other) => element("p",
      { text: `with ${other.place + 1}: ${probability(other.probability)}, ${signed(other.bits)} bits` }));
    box.append(element("div", { classes: "evidence sum" },
      element("p", {}, element("b", { text: probability(one.membership) }), " probability of membership"), ...beside));
  });
  const said = Object.entries(found.said).map(([who, people]) => `${who}: ${inWords(people)}`);
  if (said.length) root.append(element("div", { classes: "evidence sum how" }, ...said.map((text) => element("p", { text }))));
  return found.records.map((one, place) => `record ${place + 1}: ${probability(one.membership)}`).join("; ");
}
