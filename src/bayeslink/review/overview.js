// The overview: progress, agreement, sample, downloads, linking again.

import { VERDICTS, count, element, tenths, value } from "/draw.js";

/** Its sections; `acts` says what opening a case, drawing a sample, a download and linking again do. */
export const overviewParts = (state, acts) => [
  progress(state), agreement(state), disagreements(state, acts), mine(state, acts),
  sample(state, acts), downloads(state, acts), linking(state, acts),
];

const section = (title, ...children) =>
  element("section", {}, element("h3", { text: title }), ...children);
const words = (text) => element("p", { text });

function progress(state) {
  return section("Progress", words(
    `${count(state.judged)} of ${count(state.worth)} cases worth judging have been judged, by anyone. `
    + `Errors to expect among them: ${tenths(state.false)} ${state.people ? "pairs of two people joined" : "false links"} and `
    + `${tenths(state.errors - state.false)} ${state.people ? "of one person missed" : "true ones missed"}, ${tenths(state.errors)} in all; ${tenths(state.errors_left)} of these are among pairs not yet settled. `
    + "The report counts those of all pairs, also of cases hardly worth judging."));
}

function agreement(state) {
  if (!state.agreement.length) {
    return section("Agreement", words("Shown once two reviewers have decided the same pairs. The queue of second opinions leads to them."));
  }
  const rows = state.agreement.map(({ reviewers, pairs, share, kappa }) => element("tr", {},
    element("td", { text: reviewers.join(" and ") }),
    element("td", { classes: "n", text: count(pairs) }),
    element("td", { classes: "n", text: `${(100 * share).toFixed(0)} %` }),
    element("td", { classes: "n", text: kappa === null ? "–" : kappa.toFixed(2) })));
  const heads = ["Reviewers", "Pairs decided by both", "Agree", "Cohen’s κ"];
  return section("Agreement", element("table", { classes: "plain" },
    element("thead", {}, element("tr", {}, ...heads.map((text, i) =>
      element("th", { text, scope: "col", ...(i && { classes: "n" }) })))),
    element("tbody", {}, ...rows)));
}

const PEOPLE = { link: "one person", nonlink: "two people", unsure: "unsure" };

function disagreements(state, acts) {
  if (!state.disagreements.length) return section("Disagreements", words("None."));
  return section("Disagreements", element("ul", { classes: "list" },
    ...state.disagreements.map(({ case: key, pair, said }) => element("li", {},
      opener(key, `Case ${key}`, acts), " ", value(pair[0]), state.people ? " and " : " (A) and ",
      value(pair[1]), state.people ? ": " : " (B): ",
      Object.entries(said).map(([who, v]) => `${who} ${state.people ? PEOPLE[v] : VERDICTS[v].name.toLowerCase()}`).join(", ")))));
}

function mine(state, acts) {
  if (!state.mine.length) return "";
  return section("Your latest cases", element("p", { classes: "openers" },
    ...state.mine.map((key) => opener(key, key.replace("pair-", "pair "), acts))));
}

function opener(key, text, acts) {
  const button = element("button", { type: "button", text });
  button.addEventListener("click", () => acts.open(key));
  return button;
}

/** How far the judged sample has come; once it is whole, what it says of the run. */
export const sampleSays = ({ drawn, left, quality }, unit = "pairs") => left
  ? [words(`${count(left)} of ${count(drawn)} ${unit} drawn are still to be judged. Estimates follow when all are: those judged so far may not be typical.`)]
  : [words(`All ${count(drawn)} ${unit} drawn have been judged. They say of the run, with 95 % intervals:`),
    element("pre", { classes: "quality", text: quality, tabindex: "0" })];

function sample(state, acts) {
  const size = element("input", { type: "number", min: 1, value: state.sample?.drawn ?? 200 });
  const button = element("button", { type: "button", text: state.sample ? "Draw anew" : "Draw" });
  button.addEventListener("click", () => acts.draw(Number(size.value)));
  const [unit, of] = state.people ? ["clusters", "people"] : ["pairs", "true links"];
  const about = state.sample
    ? sampleSays(state.sample, unit)
    : [words(`The cases most worth judging are not typical. To estimate precision, recall and the number of ${of}, judge ${unit} drawn at random: they make a queue of their own.`)];
  return section("Random sample", ...about, element("p", {}, element("label", {}, state.people ? "Clusters " : "Pairs ", size), " ", button));
}

function downloads(state, acts) {
  const files = [["labels.csv", "CSV"], ["labels.parquet", "Parquet"]];
  if (!state.people) files.push(["splink.csv", "Splink labels, CSV"], ["splink.parquet", "Splink labels, Parquet"]);
  return section("Download the judgements", element("p", { classes: "openers" },
    ...files.map(([name, text]) => {
      const button = element("button", { type: "button", text });
      button.addEventListener("click", () => acts.download(name));
      return button;
    })));
}

function linking(state, acts) {
  const { command, status, words: said } = state.rerun;
  const button = element("button", { type: "button", text: state.people ? "Find the people again now" : "Link again now" });
  button.disabled = status === "running";
  button.addEventListener("click", acts.relink);
  const [title, what] = state.people
    ? ["Find the people again with the judgements", "Records judged to be of one person, or of two, are known to be, and the rest is worked out anew. By hand:"]
    : ["Link again with the judgements", "Pairs judged a link or no link become known, and the rest is worked out anew. By hand:"];
  return section(title, words(what),
    element("pre", { text: command, tabindex: "0" }), element("p", {}, button),
    element("p", { classes: status === "failed" ? "lines error" : "lines", role: "status", text: said }));
}
