import { ask, download, enter } from "/asking.js";
import { VERDICTS, count, element, group, probability, showEvidence, tenths } from "/draw.js";
import { overviewParts, sampleSays } from "/overview.js";
import { allApart, allOne, inWords, markPeople, question, recordTable, saidOf, showDoubt } from "/people.js";

const at = (id) => document.getElementById(id);
const OTHER = { A: "B", B: "A" };
const me = {
  reviewer: recall("reviewer") ?? "",
  keys: recall("keys") !== "off",
};
let shown = null; // the case on the screen: what the server said, verdicts, which pair is chosen
let state = null; // of the whole review
let people = false; // whether cases are of people with any number of records, and not of pairs
let loading = false; // a case is on its way: keys must not judge what is not yet seen

function recall(name) {
  try { return localStorage.getItem(`review-${name}`); } catch { return null; }
}
function remember(name, text) {
  try { localStorage.setItem(`review-${name}`, text); } catch { /* private window: ask next time */ }
}

// --- talking to the server ---------------------------------------------------------------------

const query = (values) => new URLSearchParams({ reviewer: me.reviewer, ...values });

// One thing at a time: keys pressed while the server is busy wait for their turn.
let turn = Promise.resolve();
function inTurn(act) {
  turn = turn.then(act).catch((error) => {
    say(error.message, "error");
    if (at("more-dialog").open) at("overview").prepend(element("p", { classes: "error", text: error.message }));
  });
  return turn;
}

function say(words, kind = "") {
  at("status").textContent = words;
  at("status").className = kind;
  at("live").textContent = words;
}

// --- cases ---------------------------------------------------------------------------------------

async function refresh(from = "state") {
  state = await ask(`/api/${from}?${query({})}`);
  at("bar").max = Math.max(1, state.worth);
  at("bar").value = state.judged;
  at("progress").textContent = `${count(state.judged)} of ${count(state.worth)} judged`;
  at("left").textContent = `${tenths(state.errors_left)} of ${tenths(state.errors)} expected errors left`;
  for (const option of at("queue").options) {
    option.dataset.name ??= option.textContent;
    option.textContent = `${option.dataset.name} (${count(state.queues[option.value])})`;
  }
}

async function load(act) {
  loading = true;
  try { await act(); } finally { loading = false; }
}

async function next() {
  const asked = { queue: at("queue").value, ...(shown && { after: shown.case }) };
  const { case: key } = await ask(`/api/next?${query(asked)}`);
  if (key === null) return finished();
  await open(key);
}

async function open(key, queue = at("queue").value) {
  const found = await ask(`/api/case/${encodeURIComponent(key)}?${query({ queue })}`);
  const pairs = people ? found.records : found.groups.flatMap((g) => g.pairs.map((pair) => ({ ...pair, group: g })));
  pairs.sort((x, y) => x.place - y.place);
  const verdicts = found.verdicts ?? found.found; // of people, as the run has it until that is changed
  shown = {
    ...found,
    pairs, // or records
    verdicts,
    ticked: new Set(), // records on which the next key acts
    because: pairs.map(() => false), // whether a verdict follows from a rival's link
    before: [], // verdicts as they were, since the case was opened or saved
    chosen: 0,
    revealed: false,
    stored: Boolean(found.verdicts?.every(Boolean)), // a judgement of it stands
    unsaved: false, // a complete one is yet to be stored
  };
  await refresh();
  const [single, number] = key.split("-");
  at("title").textContent = number ? `${single[0].toUpperCase()}${single.slice(1)} ${number}` : `Case ${count(Number(key))}`;
  at("remark").textContent = people ? question(found.found) : remarkOn(found.groups, pairs.length);
  const other = people ? "" : OTHER[found.groups[0].side];
  at("case").replaceChildren(...(people ? [recordTable(found, tick)]
    : found.groups.map((g) => group(g, found.fields, other, judge))));
  at("case").dataset.case = key;
  for (const part of at("case").querySelectorAll("[data-place]")) {
    part.addEventListener("pointerdown", () => choose(Number(part.dataset.place), false));
  }
  markDisputes(found.disputed);
  arrange();
  mark();
  at("main").focus({ preventScroll: true });
  window.scrollTo(0, 0);
  say(shown.stored ? "You judged this case before; a new verdict replaces the old." : openPairs());
}

function remarkOn(groups, n) {
  const side = groups[0].side;
  if (n === 1) return "Are these two records of the same person?";
  if (groups.length === 1) return `Which record of ${OTHER[side]} is of the same person, if any?`;
  return `${groups.length} records of ${side} have rivals in common: which belong together?`;
}

async function finished() {
  shown = null;
  at("title").textContent = "Nothing left in this queue";
  at("remark").textContent = "Choose another queue, or see the overview.";
  at("case").replaceChildren();
  delete at("case").dataset.case;
  at("main").focus();
  say("Nothing left in this queue.");
  mark();
  const sampled = at("queue").value === "sample";
  await refresh(sampled ? "overview" : "state");
  if (sampled && state.sample) at("case").replaceChildren(...sampleSays(state.sample, state.people ? "clusters" : "pairs"));
}

/** Pairs on which reviewers disagree, and how that is settled. */
function markDisputes(disputed) {
  shown.disputed = disputed.some(Boolean);
  for (const old of at("case").querySelectorAll(".disputed")) old.remove();
  disputed.forEach((is, place) => {
    const head = at("case").querySelector(`thead [data-place="${place}"]`);
    if (is) head.append(element("span", { classes: "disputed", text: "disputed" }));
  });
  if (!shown.disputed) return;
  at("case").prepend(element("p", { classes: "disputed how", text:
    "Reviewers disagree on what is marked disputed; p shows who said what. It is settled when all who "
    + "judged the pair say the same: talk it over, then open the case under the name of whoever was wrong "
    + "and judge it anew. Until then, linking again leaves the pair to the model." }));
}

function openPairs() {
  if (people) return shown.unsaved ? `${inWords(shown.verdicts)}. Enter keeps it` : shown.stored ? "" : "Right as shown (c)? If not, change it";
  const left = shown.verdicts.filter((v) => !v).length;
  if (left === 0) return "";
  if (shown.stored) return `${left} open; your earlier judgement stands until each has a verdict.`;
  return shown.pairs.length === 1 ? "Link, not a link, or unsure?" : `${left} of ${shown.pairs.length} pairs open`;
}

/** A verdict on a pair. A link makes non-links of its rivals; without it they are open again. */
function judge(place, verdict, byKey = false) {
  if (!shown || loading) return;
  if (people) return judgeRecords(place, verdict);
  const rivals = shown.pairs.filter((pair) => pair.place !== place
    && pair.records.some((record, side) => record === shown.pairs[place].records[side]));
  const wasLink = shown.verdicts[place] === "link";
  keep();
  shown.verdicts[place] = verdict;
  shown.because[place] = false;
  for (const { place: rival } of rivals) {
    if (verdict === "link" && shown.verdicts[rival] !== "nonlink") {
      shown.verdicts[rival] = "nonlink";
      shown.because[rival] = true;
    } else if (wasLink && verdict !== "link" && shown.because[rival] && !hasLinkedRival(rival)) {
      shown.verdicts[rival] = null;
      shown.because[rival] = false;
    }
  }
  const following = shown.verdicts.findIndex((v) => !v);
  choose(following < 0 ? place : following, byKey);
  settle(`${VERDICTS[verdict].name}: pair ${place + 1}. `);
}

function hasLinkedRival(place) {
  return shown.pairs.some((pair) => pair.place !== place && shown.verdicts[pair.place] === "link"
    && pair.records.some((record, side) => record === shown.pairs[place].records[side]));
}

/** Remember the verdicts as they are, to come back to by undo. */
function keep() {
  shown.before.push({ verdicts: [...shown.verdicts], because: [...shown.because] });
}

/** Of people: the ticked records, or the chosen one, are one person, another, or unsure. */
function judgeRecords(place, verdict) {
  const ticked = [...shown.ticked].sort((x, y) => x - y);
  const alone = verdict === "link" ? [0, place] : [place];
  const places = ticked.length ? ticked : alone;
  if (verdict === "link" && new Set(places).size < 2) {
    return say("Choose a record that is the same person as record 1, or tick those that are one person (t).", "error");
  }
  change(saidOf(shown.verdicts, places, verdict));
  if (!ticked.length) choose(place + 1);
}

function change(verdicts) {
  if (!shown || loading) return;
  keep();
  shown.verdicts = verdicts;
  shown.ticked.clear();
  shown.unsaved = true;
  mark();
  say(openPairs());
}

function tick(place) {
  if (!people || !shown || loading) return;
  if (!shown.ticked.delete(place)) shown.ticked.add(place);
  mark();
}

/** Keep the people as they are shown. */
function asShown() {
  if (!shown || loading) return;
  shown.unsaved = true;
  const judged = shown;
  inTurn(() => save(judged, `${inWords(judged.verdicts)}. `));
}

function noneOfThese() {
  if (!shown || loading) return;
  if (people) return asShown();
  keep();
  shown.verdicts = shown.pairs.map(() => "nonlink");
  shown.because = shown.pairs.map(() => false);
  settle("None of these. ");
}

/** Save a complete case at once. */
function settle(words) {
  mark();
  shown.unsaved = shown.verdicts.every(Boolean);
  if (!shown.unsaved) return say(words + openPairs());
  const judged = shown;
  inTurn(() => save(judged, words));
}

async function save(judged, words) {
  const { case: key, version } = judged;
  const verdicts = [...judged.verdicts];
  if (!verdicts.every(Boolean)) return; // a link was withdrawn meanwhile
  const { disputed } = await ask("/api/judge", { case: key, version, verdicts, reviewer: me.reviewer });
  judged.stored = true;
  judged.before = [];
  if (judged.disputed && judged === shown) markDisputes(disputed);
  judged.unsaved = verdicts.some((verdict, place) => verdict !== judged.verdicts[place]);
  await refresh();
  say(`${words}Saved.`, "saved");
}

/** Choose a pair; the page moves to it only for keys, never under a finger. */
function choose(place, byKey = true) {
  if (!shown) return;
  shown.chosen = Math.max(0, Math.min(place, shown.pairs.length - 1));
  mark();
  if (!byKey) return;
  const head = at("case").querySelector(`thead [data-place="${shown.chosen}"]`);
  head?.closest("table").scrollIntoView({ block: "nearest" });
}

/** Bring what is seen in line with what is known. */
function mark() {
  for (const part of at("case").querySelectorAll("[data-place]")) {
    const place = Number(part.dataset.place);
    part.classList.toggle("chosen", place === shown.chosen);
    part.dataset.verdict = shown.verdicts[place] ?? "";
    for (const button of part.querySelectorAll("button[data-verdict]")) {
      button.setAttribute("aria-pressed", String(button.dataset.verdict === shown.verdicts[place]));
    }
    const because = part.querySelector(".because");
    if (because) because.textContent = shown.because[place] ? "as a rival is linked" : "";
  }
  if (people && shown) markPeople(at("case"), shown.verdicts, shown.ticked);
  const complete = Boolean(people ? shown?.unsaved || shown?.stored : shown?.verdicts.every(Boolean));
  at("next").classList.toggle("ready", complete);
  at("none").disabled = at("skip").disabled = at("reveal").disabled = at("next").disabled = !shown;
  at("none").hidden = !shown || shown.pairs.length < 2;
  at("reveal").querySelector(".does").textContent = shown?.revealed ? "Hide" : "Show";
  at("quick").hidden = !shown;
  if (people && shown) {
    at("quick-of").textContent = shown.ticked.size ? `${shown.ticked.size} ticked` : `Record ${shown.chosen + 1} of ${shown.pairs.length}`;
    return;
  }
  if (shown) at("quick-of").textContent = shown.pairs.length > 1 ? `Pair ${shown.chosen + 1} of ${shown.pairs.length}` : "";
  for (const button of at("quick").querySelectorAll("button")) {
    button.setAttribute("aria-pressed", String(button.dataset.quick === shown?.verdicts[shown.chosen]));
  }
}

async function reveal() {
  if (!shown) return;
  shown.revealed = !shown.revealed;
  for (const old of at("case").querySelectorAll(".evidence")) old.remove();
  if (shown.revealed) {
    const found = await ask(`/api/evidence/${encodeURIComponent(shown.case)}`);
    if (people) say(`Probability of membership, ${showDoubt(found, at("case"))}.`);
    else showPairs(found);
  } else {
    say(openPairs());
  }
  arrange();
  mark();
}

function showPairs(found) {
  found.forEach((one, place) => showEvidence(place, one, at("case")));
  const best = found.map((one, place) => `pair ${place + 1}: ${probability(one.probability)}`);
  say(`Probability of a link, ${best.join("; ")}.`);
}

function goOn() {
  inTurn(() => load(async () => {
    if (shown?.unsaved) await save(shown, "");
    if (!shown || shown.stored) return next();
    say(people ? "Press c if it is right as shown, change it, or skip the case with s."
      : `${openPairs()}: judge each, or skip the case with s.`, "error");
  }));
}

/** First what is not yet saved of this case, verdict by verdict; then the latest judgement. */
async function undo() {
  const earlier = shown?.before.pop();
  if (earlier) {
    Object.assign(shown, earlier, { unsaved: people && shown.before.length > 0 });
    mark();
    return say(`Taken back: the last ${people ? "change" : "verdict"}, which was not saved yet. ${openPairs()}`);
  }
  const { case: key } = await ask("/api/undo", { reviewer: me.reviewer });
  if (key === null) return say("There is nothing of yours to take back.");
  await open(key);
  say(`Taken back: ${at("title").textContent}. Judge it anew.`);
}

// --- columns side by side where they fit, else one above the other -------------------------------

function arrange() {
  const size = parseFloat(getComputedStyle(document.documentElement).fontSize);
  const tables = [...at("case").querySelectorAll("table")];
  const columns = tables.map((table) => table.querySelectorAll("thead th").length - 1);
  const room = at("case").clientWidth / size - FIELD;
  const width = Math.min(room / Math.max(...columns), WIDEST);
  const widest = width < NARROWEST ? STACKED : FIELD + width * Math.max(...columns);
  at("main").style.setProperty("--case", `${widest}rem`);
  tables.forEach((table, place) => {
    table.classList.toggle("stacked", width < NARROWEST);
    table.classList.toggle("roomy", width >= ROOMY); // evidence fits beside the values
    table.style.width = width < NARROWEST ? "" : `${FIELD + width * columns[place]}rem`;
  });
  // Beside all values, or below all: where one is too long for it, columns would differ.
  const below = (evidence) => {
    const { offsetTop, offsetHeight } = evidence.parentElement.firstElementChild;
    return evidence.offsetTop >= offsetTop + offsetHeight - 2;
  };
  const beside = tables.flatMap((table) => [...table.querySelectorAll(".roomy .line .evidence")]);
  if (beside.some(below)) for (const table of tables) table.classList.remove("roomy");
}
const FIELD = 8, NARROWEST = 11.5, ROOMY = 21, WIDEST = 24, STACKED = 44; // widths of columns, in rem
new ResizeObserver(arrange).observe(at("case"));

// --- keys and buttons ----------------------------------------------------------------------------

const KEYS = {
  l: () => judge(shown?.chosen, "link", true),
  n: () => judge(shown?.chosen, "nonlink", true),
  u: () => judge(shown?.chosen, "unsure", true),
  x: () => (people ? change(allApart(shown?.verdicts ?? [])) : noneOfThese()),
  a: () => people && change(allOne(shown?.verdicts ?? [])),
  c: () => people && asShown(),
  t: () => tick(shown?.chosen),
  p: () => inTurn(reveal),
  z: () => inTurn(() => load(undo)),
  s: () => inTurn(() => load(next)),
  o: () => inTurn(overview),
  "?": () => at("help-dialog").showModal(),
  j: () => choose(shown?.chosen + 1),
  k: () => choose(shown?.chosen - 1),
  ArrowRight: () => choose(shown?.chosen + 1),
  ArrowDown: () => choose(shown?.chosen + 1),
  ArrowLeft: () => choose(shown?.chosen - 1),
  ArrowUp: () => choose(shown?.chosen - 1),
  Enter: goOn,
  " ": goOn,
};

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  if (document.querySelector("dialog[open], footer[hidden]")) return;
  const target = event.target;
  const onControl = target.closest("button, select, input, a, summary");
  if (onControl && (["Enter", " "].includes(event.key) || target.matches("select, input"))) return;
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  if (!me.keys && event.key.length === 1 && key !== " ") return;
  const act = KEYS[key] ?? (/^[1-9]$/.test(key) ? () => choose(Number(key) - 1) : null);
  if (!act) return;
  event.preventDefault();
  if (!event.repeat || key.startsWith("Arrow")) act();
});

for (const button of at("quick").querySelectorAll("button")) {
  button.addEventListener("click", () => judge(shown?.chosen, button.dataset.quick, true));
}
at("none").addEventListener("click", noneOfThese);
at("reveal").addEventListener("click", KEYS.p);
at("undo").addEventListener("click", KEYS.z);
at("skip").addEventListener("click", KEYS.s);
at("next").addEventListener("click", goOn);
at("help").addEventListener("click", KEYS["?"]);
at("more").addEventListener("click", KEYS.o);
at("who").addEventListener("click", askName);
at("queue").addEventListener("change", () => {
  shown = null;
  at("main").focus();
  inTurn(() => load(next));
});
at("keys-on").checked = me.keys;
at("keys-on").addEventListener("change", () => {
  me.keys = at("keys-on").checked;
  remember("keys", me.keys ? "on" : "off");
});
for (const button of document.querySelectorAll("[data-close]")) {
  button.addEventListener("click", () => button.closest("dialog").close());
}

// --- who judges ----------------------------------------------------------------------------------

function askName() {
  at("name").value = me.reviewer || (state?.reviewers.length === 1 ? state.reviewers[0] : "");
  at("names").replaceChildren(
    ...(state?.reviewers ?? []).map((name) => element("option", { value: name })));
  at("name-error").textContent = "";
  at("main").focus({ preventScroll: true }); // where keys go afterwards, not to the button
  at("name-dialog").showModal();
  at("name").select();
}

function takeName() {
  const name = at("name").value.trim().replace(/\s+/g, " ");
  if (!name) {
    at("name-error").textContent = "Give a name or initials.";
    return;
  }
  me.reviewer = name;
  remember("reviewer", name);
  at("who").textContent = name;
  at("who").setAttribute("aria-label", `Reviewer: ${name}. Change`);
  at("name-dialog").close();
  shown = null;
  inTurn(() => load(next));
}
at("name-ok").addEventListener("click", takeName);
at("name").addEventListener("keydown", (event) => {
  if (event.key !== "Enter") return;
  event.preventDefault(); // one press does one thing
  takeName();
});
at("name-dialog").addEventListener("cancel", (event) => {
  if (!me.reviewer) event.preventDefault();
});

// --- overview ------------------------------------------------------------------------------------

async function overview() {
  at("more-dialog").showModal();
  await fill();
}

async function fill() {
  await refresh("overview");
  at("overview").replaceChildren(...overviewParts(state, {
    open(key) {
      at("more-dialog").close();
      inTurn(() => load(() => open(key, "disagreements")));
    },
    draw: (size) => inTurn(() => ask("/api/sample", { size }).then(fill)),
    download: (name) => inTurn(() => download(name)),
    relink: () => inTurn(() => ask("/api/relink", {}).then(fill)),
  }));
  clearTimeout(watching);
  if (state.rerun.status === "running") {
    watching = setTimeout(() => { if (at("more-dialog").open) inTurn(fill); }, 1000);
  }
}
let watching = 0; // the linkage in the background

// --- begin ---------------------------------------------------------------------------------------

/** What is there for pairs, or for people, alone. */
function fit() {
  people = state.people;
  document.body.classList.toggle("people", people);
  for (const part of document.querySelectorAll("[data-of]")) part.hidden = (part.dataset.of === "people") !== people;
}

async function begin() {
  try {
    await enter();
    state = await ask("/api/state");
    fit();
  } catch (error) {
    at("title").textContent = "This page cannot be shown";
    at("remark").textContent = error.message;
    for (const part of document.querySelectorAll(".progress, .tools, footer")) part.hidden = true;
    at("live").textContent = error.message;
    return;
  }
  if (me.reviewer) return load(next);
  askName();
}
at("who").textContent = me.reviewer || "Your name";
inTurn(begin);
