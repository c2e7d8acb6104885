// Turns what the server says into elements. Text only ever becomes text: no markup is parsed.

const KINDS = { same: "", other: "other", gap: "gap", label: "label" };
export const VERDICTS = {
  link: { name: "Link", sign: "✓" },
  nonlink: { name: "Not a link", sign: "✕" },
  unsure: { name: "Unsure", sign: "?" },
};

export const count = (n) => n.toLocaleString("en");
export const tenths = (x) => x.toLocaleString("en", { minimumFractionDigits: 1, maximumFractionDigits: 1 });

/** An element with attributes, classes and children (elements or text). */
export function element(tag, { classes = "", text, ...attributes } = {}, ...children) {
  const made = document.createElement(tag);
  if (classes) made.className = classes;
  if (text !== undefined) made.textContent = text;
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

/** The plain words of segments, for labels that are read aloud. */
export const plain = (segments) =>
  segments.map(([kind, text]) => (kind === "label" ? ` (${text}) ` : text)).join("").trim();

/** A value: each segment in its own way. */
export function value(segments) {
  const shown = element("bdi", { classes: "value" });
  for (const [kind, text] of segments) {
    const classes = KINDS[kind];
    shown.append(classes ? element("span", { classes, text }) : text);
  }
  return shown;
}

const LIKE = { same: "same", other: "differs", missing: "cannot be compared" };
const SIGNS = { same: "=", other: "≠" };

/** A value of a record, and how it is like that of the first. */
export function cell({ text, like }, attributes) {
  const line = element("div", { classes: "line" },
    text === null ? element("span", { classes: "missing", text: "missing" }) : value(text));
  if (like) line.append(element("span", { classes: "unseen", text: ` (${LIKE[like]})` }));
  if (SIGNS[like]) line.append(element("span", { classes: "sign", "aria-hidden": "true", text: SIGNS[like] }));
  const shown = element("td", { role: "cell", ...attributes }, line);
  if (like) shown.classList.add(`is-${like}`);
  return shown;
}

const recordOf = () => element("span", { classes: "of", text: "Record of " });

/** One record against its rivals: fields are rows, records are columns. */
export function group(content, fields, other, act) {
  const { side, id, cells, pairs } = content;
  const name = `${side} ${plain(id)}`;
  const table = element("table", { classes: "group", role: "table" });
  table.setAttribute("aria-label", `Record ${name} beside ${pairs.length} of ${other}`);

  const head = element("tr", { role: "row" });
  head.append(element("th", { scope: "col", role: "columnheader", classes: "corner" },
    element("span", { classes: "unseen", text: "Field" })));
  head.append(element("th", { scope: "col", role: "columnheader", classes: "first" },
    element("span", { classes: "side" }, recordOf(), side), value(id)));
  for (const pair of pairs) {
    const column = element("th", { scope: "col", role: "columnheader", "data-place": pair.place },
      element("span", { classes: "side" }, element("b", { text: pair.place + 1 }), recordOf(), other),
      value(pair.id));
    head.append(column);
  }

  const body = element("tbody", { role: "rowgroup" });
  fields.forEach((field, row) => {
    const line = element("tr", { role: "row", "data-row": row });
    const label = element("th", { scope: "row", role: "rowheader" }, value(field.name));
    if (field.columns) {
      const columns = element("small", { classes: "columns" });
      field.columns.forEach((name, i) => columns.append(element("span", {}, `${"AB"[i]}: `, value(name)), " "));
      label.append(columns);
    }
    if (!field.compared) label.append(element("small", { text: " not compared" }));
    line.append(label, cell(cells[row], { classes: "first", "data-label": side }));
    for (const pair of pairs) {
      line.append(cell(pair.cells[row], { "data-place": pair.place, "data-label": pair.place + 1 }));
    }
    body.append(line);
  });

  const verdicts = element("tr", { role: "row", classes: "verdicts" });
  verdicts.append(element("th", { scope: "row", role: "rowheader", text: "Same person?" }),
    element("td", { role: "cell", classes: "first" }));
  for (const pair of pairs) {
    verdicts.append(element("td", { role: "cell", "data-place": pair.place, "data-label": pair.place + 1 },
      choices(pair, `${name} with ${other} ${plain(pair.id)}`, act)));
  }
  body.append(verdicts);
  table.append(element("thead", { role: "rowgroup" }, head), body);
  return table;
}

function choices(pair, name, act) {
  const box = element("div", { classes: "choices", role: "group", "aria-label": name });
  for (const [verdict, { name: words, sign }] of Object.entries(VERDICTS)) {
    const button = element("button", { type: "button", "aria-pressed": "false", "data-verdict": verdict },
      element("span", { "aria-hidden": "true", text: sign }), " ",
      element("span", { classes: "words", text: words }));
    button.addEventListener("click", () => act(pair.place, verdict));
    box.append(button);
  }
  box.append(element("span", { classes: "because" }));
  return box;
}

export const signed = (bits) => (bits < 0 ? "−" : bits > 0 ? "+" : "") + Math.abs(bits).toFixed(1);
const WIDEST = 12; // bits

/** What the run says of a pair, in its column: a bar for each field, then the probability. */
export function showEvidence(place, found, root) {
  const cells = root.querySelectorAll(`tbody td[data-place="${place}"]`);
  found.fields.forEach(([level, bits], row) => {
    const track = element("span", { classes: "track", "aria-hidden": "true" });
    if (bits) {
      const bar = element("span", { classes: bits < 0 ? "bar against" : "bar" });
      bar.style.width = `${Math.min(Math.abs(bits), WIDEST) / WIDEST * 50}%`;
      track.append(bar);
    }
    cells[row].querySelector(".line").append(element("span", { classes: "evidence", title: level },
      track,
      element("span", { classes: "bits", text: signed(bits) }),
      element("span", { classes: "unseen", text: ` bits: ${level}` })));
  });
  const said = Object.entries(found.said).map(([who, verdict]) => `${who}: ${VERDICTS[verdict].name.toLowerCase()}`);
  const last = cells[cells.length - 1];
  const together = found.together ? [`${signed(found.together)} bits of all fields together, beyond each alone`] : [];
  last.append(element("div", { classes: "evidence sum" },
    element("p", {}, element("b", { text: probability(found.probability) }), " probability of a link"),
    ...together.map((text) => element("p", { classes: "together", text })),
    element("p", { text: `${signed(found.bits)} bits in all; ${found.linked ? "linked" : "not linked"} by the run` }),
    ...said.map((text) => element("p", { text }))));
}

export function probability(p) {
  if (p < 0.001) return "< 0.001";
  return p > 0.999 ? "> 0.999" : p.toFixed(3);
}
