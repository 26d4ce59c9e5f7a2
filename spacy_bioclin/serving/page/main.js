// The page: a note goes to the service, and what comes back is shown.

import { request, useKey } from "./api.js";
import { Card, describeEntity, describeReplacement } from "./card.js";
import { EXAMPLES } from "./examples.js";
import { Filters } from "./filters.js";
import { KINDS, findHue, findKinds, isShown, readAnswer } from "./found.js";
import { EntityList } from "./list.js";
import { NoteView } from "./note.js";
import { PairView, readSafe } from "./safe.js";
import { copy, download, writeJson } from "./save.js";
import { countCodePoints, make, makeText, makeWellFormed } from "./text.js";
import { Tabs, switchTheme } from "./views.js";
import {
  preferredLanguage,
  say,
  sayLabel,
  sayLanguage,
  sayNumber,
  sayPercent,
  setLanguage,
} from "./words.js";

const at = (id) => document.getElementById(id);
const MOST_RELATIONS = 100;
const state = { info: undefined, text: "", answer: undefined, safeAnswer: undefined };
let found = { entities: [], sections: [], relations: [], categories: null };
let running;

const card = new Card(at("card"));
const closeCard = () => card.closeSoon();
const tabs = new Tabs(document.querySelector("[role=tablist]"), () => card.close());
const note = new NoteView(at("note"), {
  onOpen: (mark, entities) => {
    card.open(mark, ...entities.map(describeEntity));
    note.light(entities.slice(0, 1));
  },
  onClose: closeCard,
  onPick: (entity) => isWide() && list.focus(entity), // else the list is far below
});
const list = new EntityList(
  {
    list: at("list"),
    empty: at("list-empty"),
    previous: at("list-previous"),
    next: at("list-next"),
  },
  {
    onOpen: (option, entity) => {
      const mark = note.light([entity], { scroll: isWide() });
      card.open((isWide() && mark) || option, describeEntity(entity));
    },
    onClose: closeCard,
    onGo: (entity) => note.focus(entity),
  },
);
const filters = new Filters(at("labels"), () => showChosen());
const pair = new PairView(at("safe-note"), {
  onOpen: (mark, span) => {
    const original = state.text.slice(span.start, span.end);
    card.open(mark, describeReplacement({ ...span, text: original }));
  },
  onClose: closeCard,
});

// The list is beside the note.
function isWide() {
  return matchMedia("(min-width: 64rem)").matches;
}

function threshold() {
  return Number(at("threshold").value) / 100;
}

async function annotate() {
  const text = makeWellFormed(at("text").value);
  const problem = findProblem(text);
  tellProblem(problem);
  if (problem) {
    tabs.choose(at("tab-write"));
    at("text").focus();
    return;
  }
  running?.abort();
  const run = new AbortController();
  running = run;
  setBusy(true);
  const began = performance.now();
  try {
    const answer = await request("annotate", { text }, run.signal);
    Object.assign(state, { text, answer, safeAnswer: undefined });
    at("key-form").hidden = true;
    showAnswer();
    showSafe({}); // not that of the note before
    tabs.choose(at("tab-found"));
    tellDone((performance.now() - began) / 1000);
    // Not at the same time: the pipeline would read both before it answers the first.
    showSafe(await askSafe(text, run.signal));
  } catch (error) {
    if (running === run) tellFailure(error);
  } finally {
    if (running === run) setBusy(false);
  }
}

async function askSafe(text, signal) {
  if (state.info?.deidentify === false) return {};
  try {
    return { answer: await request("deidentify", { text }, signal) };
  } catch (error) {
    return { error };
  }
}

function findProblem(text) {
  if (!text.trim()) return say("emptyNote");
  const limit = state.info?.limits.max_bytes;
  const n = new Blob([JSON.stringify({ text })]).size;
  if (n > limit) return say("tooLong", { n: sayNumber(n), limit: sayNumber(limit) });
  return "";
}

function setBusy(isBusy) {
  at("workspace").setAttribute("aria-busy", String(isBusy));
  at("cancel").hidden = !isBusy;
  if (isBusy) at("status").textContent = say("annotating");
}

function tellProblem(sentence) {
  at("problem").textContent = sentence;
  if (sentence) at("status").textContent = "";
}

function tellFailure(error) {
  if (error.name === "AbortError") {
    at("status").textContent = say("cancelled");
    return;
  }
  tellProblem(error.message);
  if (error.status === 401) {
    at("key-form").hidden = false;
    at("key").focus();
  }
}

function tellDone(seconds) {
  const n = found.entities.length;
  const told = [
    say(n === 1 ? "doneOne" : "done", {
      n: sayNumber(n),
      seconds: sayNumber(seconds, { maximumFractionDigits: 2 }),
    }),
  ];
  const [guess, lang] = [state.answer.language, state.info?.pipeline?.lang];
  if (guess && lang && guess !== lang) {
    told.push(say("otherLanguage", { guess: sayLanguage(guess), lang: sayLanguage(lang) }));
  }
  at("status").textContent = told.join(" ");
}

function showAnswer() {
  found = readAnswer(state.text, state.answer);
  at("tab-found").disabled = false;
  filters.show(found.entities);
  at("legend").replaceChildren(
    `${say("legend")} `,
    ...KINDS.filter((kind) => found.entities.some((each) => findKinds(each).includes(kind))).map((kind) =>
      make("span", { class: `mention ${kind}` }, `${say(kind)} (${say(`${kind}_short`)})`),
    ),
  );
  at("legend").hidden = at("legend").children.length === 0;
  showCategories();
  showChosen();
}

function showChosen() {
  card.close();
  at("threshold-value").textContent = sayPercent(threshold());
  const chosen = filters.choose(found.entities, threshold());
  note.show(state.text, found.sections, chosen);
  list.show(chosen);
  at("count-found").textContent = sayNumber(chosen.length);
  at("list-count").textContent = say("shownOf", {
    n: sayNumber(chosen.length),
    all: sayNumber(found.entities.length),
  });
  showRelations();
}

function showRelations() {
  const shown = found.relations.filter((each) => isShown(each, threshold()));
  at("relations").hidden = found.relations.length === 0;
  at("relation-list").replaceChildren(...shown.slice(0, MOST_RELATIONS).map(makeRelation));
  const rest = shown.length - MOST_RELATIONS;
  at("relation-rest").textContent = rest > 0 ? say("restOfRelations", { n: sayNumber(rest) }) : "";
}

function makeRelation(relation) {
  const sides = [relation.head, relation.child].map((side) => {
    return makeText("bdi", side.text, { class: `mention ${findHue(side.label)}` });
  });
  const name = make("span", { class: "link" }, sayLabel(relation.label));
  const button = make("button", { type: "button" }, sides[0], name, sides[1]);
  if (relation.probability != null) {
    button.append(make("span", { class: "chance" }, sayPercent(relation.probability)));
  }
  const ends = [relation.head, relation.child].flatMap(({ start, end }) =>
    found.entities.filter((entity) => start === entity.start && end === entity.end),
  );
  const light = () => note.light(ends, { scroll: isWide() });
  const unlight = () => note.light([]);
  for (const name of ["pointerenter", "focus"]) button.addEventListener(name, light);
  for (const name of ["pointerleave", "blur"]) button.addEventListener(name, unlight);
  button.addEventListener("click", () => ends.length && note.focus(ends[0]));
  return make("li", {}, button);
}

function showCategories() {
  const categories = Object.entries(found.categories ?? {}).sort(([, a], [, b]) => b - a);
  at("categories").hidden = categories.length === 0;
  at("category-list").replaceChildren(
    ...categories.map(([label, probability]) => {
      const bar = make("meter", { max: "1", value: probability, "aria-label": sayLabel(label) });
      return make("li", {}, sayLabel(label), bar, sayPercent(probability));
    }),
  );
}

function showSafe({ answer, error }) {
  if (error?.name === "AbortError") throw error;
  state.safeAnswer = answer;
  at("tab-safe").disabled = !answer && !error;
  for (const id of ["pair", "safe-help", "safe-actions"]) at(id).hidden = !answer;
  at("safe-problem").textContent = error?.message ?? "";
  at("safe-problem").hidden = !error;
  const spans = answer ? readSafe(state.text, answer) : [];
  at("count-safe").textContent = answer ? sayNumber(spans.length) : "";
  pair.show(answer ? state.text : "", answer?.text ?? "", spans);
}

function showSize() {
  at("size").textContent = say("size", { n: sayNumber(countCodePoints(at("text").value)) });
}

function showInfo() {
  const { pipeline, deidentify } = state.info ?? {};
  at("tab-safe").hidden = deidentify === false;
  if (pipeline) {
    const parts = [`${pipeline.name} ${pipeline.version}`, sayLanguage(pipeline.lang)];
    at("pipeline").textContent = parts.join(" · ");
  }
  at("local").textContent = say("local", { address: location.host });
  showSize();
}

function speak(code) {
  setLanguage(code);
  at("language").value = code;
  showInfo();
  if (state.answer) showAnswer();
  if (state.safeAnswer) showSafe({ answer: state.safeAnswer });
}

async function loadInfo() {
  try {
    state.info = await request("info");
  } catch (error) {
    tellFailure(error);
    return;
  }
  showInfo();
}

async function tellCopied(text) {
  at("status").textContent = say((await copy(text)) ? "copied" : "notCopied");
}

function saveJson(name, value) {
  download(name, writeJson(value));
  at("status").textContent = say("downloaded", { name });
}

at("annotate").addEventListener("click", annotate);
at("cancel").addEventListener("click", () => running?.abort());
at("text").addEventListener("input", showSize);
document.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
    event.preventDefault();
    annotate();
  }
});
at("key-form").addEventListener("submit", async (event) => {
  event.preventDefault();
  useKey(at("key").value);
  if (!state.info) await loadInfo();
  if (at("text").value.trim()) annotate();
  else at("key-form").hidden = true;
});
at("example").addEventListener("click", () => {
  at("text").value = EXAMPLES[state.info?.pipeline?.lang] ?? EXAMPLES.en;
  showSize();
  at("text").focus();
});
at("clear").addEventListener("click", () => {
  at("text").value = "";
  showSize();
  at("text").focus();
});
at("threshold").addEventListener("input", () => {
  cancelAnimationFrame(state.frame);
  state.frame = requestAnimationFrame(showChosen);
});
at("language").addEventListener("change", () => speak(at("language").value));
at("copy-found").addEventListener("click", () => tellCopied(writeJson(state.answer)));
at("copy-safe").addEventListener("click", () => tellCopied(writeJson(state.safeAnswer)));
at("copy-text").addEventListener("click", () => tellCopied(state.safeAnswer.text));
at("download-found").addEventListener("click", () => saveJson("annotations.json", state.answer));
at("download-safe").addEventListener("click", () => saveJson("safe-note.json", state.safeAnswer));

switchTheme(at("theme"));
speak(preferredLanguage());
showSafe({});
loadInfo();
