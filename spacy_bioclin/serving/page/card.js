// What is known of an entity, in a card beside it. Escape hides it.

import { findHue, findKinds } from "./found.js";
import { make, makeText } from "./text.js";
import { say, sayLabel, sayLayer, sayNumber, sayPercent } from "./words.js";

const MOST_CONCEPTS = 4;
const LEAST_SCORE = 0.01; // of concepts beside the best one
const GAP = 10;

export class Card {
  constructor(card) {
    this.card = card;
    card.addEventListener("pointerenter", () => clearTimeout(this.closing));
    card.addEventListener("pointerleave", () => this.closeSoon());
    document.addEventListener("keydown", (event) => {
      if (event.key === "Escape") this.close();
    });
    // A card stays beside its element: scrolling with the wheel hides it.
    const leave = ({ target }) => card.contains(target) || this.close();
    addEventListener("wheel", leave, { passive: true });
    addEventListener("resize", () => this.close());
  }

  open(element, ...children) {
    clearTimeout(this.closing);
    this.card.replaceChildren(...children);
    this.card.hidden = false;
    const mark = element.getClientRects()[0] ?? element.getBoundingClientRect();
    const { width, height } = this.card.getBoundingClientRect();
    const left = Math.max(GAP, Math.min(mark.left, innerWidth - width - GAP));
    const below = element.getBoundingClientRect().bottom + GAP;
    const fits = below + height + GAP <= innerHeight;
    this.card.style.left = `${left}px`;
    this.card.style.top = `${fits ? below : Math.max(GAP, mark.top - height - GAP)}px`;
  }

  // The pointer has time to reach the card.
  closeSoon() {
    clearTimeout(this.closing);
    this.closing = setTimeout(() => this.close(), 200);
  }

  close() {
    this.card.hidden = true;
  }
}

export function describeEntity(entity) {
  const part = make("section", { class: findHue(entity.label) });
  const kinds = findKinds(entity);
  const mention = makeText("bdi", entity.text, { class: ["mention", ...kinds].join(" ") });
  part.append(make("p", { class: "title" }, mention));
  const badges = make("p", { class: "badges" }, makeBadge(sayLabel(entity.label), "label"));
  for (const kind of kinds) badges.append(makeBadge(say(kind), "kind"));
  part.append(badges);
  part.append(describeFacts(entity));
  const concepts = (entity.candidates ?? []).filter(
    ({ score }, i) => i === 0 || !(score < LEAST_SCORE),
  );
  if (concepts.length) {
    const list = make("ol", { class: "concepts" });
    for (const concept of concepts.slice(0, MOST_CONCEPTS)) {
      list.append(describeConcept(concept, concept.kb_id === entity.kb_id));
    }
    if (!entity.kb_id) part.append(make("p", { class: "not-linked" }, say("notLinked")));
    part.append(list);
  }
  return part;
}

function describeFacts(entity) {
  const facts = [];
  if (entity.value != null) facts.push(["value", describeValue(entity)]);
  const codes = (entity.codes ?? []).filter(({ match }) => match !== "several");
  if (codes.length) facts.push(["codes", codes.map(describeCode).join(" · ")]);
  if (entity.section) facts.push(["section", sayLabel(entity.section)]);
  if (entity.probability != null) facts.push(["probability", sayPercent(entity.probability)]);
  if (entity.kb_id && !entity.candidates?.length) facts.push(["concept", entity.kb_id]);
  facts.push(["layer", entity.layers.map(sayLayer).join(", ")]);
  const list = make("dl");
  for (const [name, value] of facts) {
    list.append(make("dt", {}, say(name)), makeText("dd", value));
  }
  return list;
}

function describeCode({ system, code, match }) {
  return `${system} ${code}${match === "broader" ? ` (${say("broader")})` : ""}`;
}

function describeValue({ value, high, comparator, unit }) {
  const write = (each) =>
    typeof each === "number" ? sayNumber(each, { maximumFractionDigits: 6 }) : String(each);
  const numbers = [value].flat().map(write).join(" × ");
  const range = high == null ? numbers : `${numbers}–${write(high)}`;
  return [`${comparator ?? ""}${range}`, unit].filter(Boolean).join(" ");
}

function describeConcept({ kb_id, name, score, definition }, isLinked) {
  const line = make("p", {}, makeText(isLinked ? "strong" : "bdi", name || kb_id), " ");
  line.append(makeText("code", kb_id));
  if (score != null) line.append(" ", make("span", { class: "chance" }, sayPercent(score)));
  const item = make("li", {}, line);
  if (definition) item.append(makeText("p", definition, { class: "definition", dir: "auto" }));
  return item;
}

export function describeReplacement(span) {
  const part = make("section", { class: findHue(span.label) });
  part.append(make("p", { class: "badges" }, makeBadge(sayLabel(span.label), "label")));
  const list = make("dl");
  list.append(make("dt", {}, say("original")), makeText("dd", span.text));
  list.append(make("dt", {}, say("replacedBy")));
  list.append(makeText("dd", span.replacement || say("removed")));
  part.append(list);
  return part;
}

function makeBadge(text, kind) {
  return make("span", { class: `badge ${kind}` }, text);
}
