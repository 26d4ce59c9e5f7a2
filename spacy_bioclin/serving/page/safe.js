// The original and the safe note side by side, line by line.

import { cutPieces, findHue } from "./found.js";
import { appendText, make, makeConverter } from "./text.js";
import { say, sayLabel } from "./words.js";

const LONGEST = 1000; // characters after which a row may end at a space

export function readSafe(text, answer) {
  const [convert, convertSafe] = [makeConverter(text), makeConverter(answer.text)];
  return answer.spans
    .map((span) => ({
      ...span,
      start: convert(span.start),
      end: convert(span.end),
      safe_start: convertSafe(span.safe_start),
      safe_end: convertSafe(span.safe_end),
    }))
    .sort((a, b) => a.start - b.start);
}

export class PairView {
  constructor(container, { onOpen, onClose }) {
    this.container = container;
    this.pairs = new Map(); // element -> span
    this.elements = new Map(); // span -> elements of both sides
    const open = (event) => {
      const mark = event.target.closest(".mark");
      if (!mark) return;
      if (event.type === "focusin") this.moveTo(mark);
      this.light(this.pairs.get(mark));
      onOpen(mark, this.pairs.get(mark));
    };
    const close = (event) => {
      this.light(undefined);
      onClose(event);
    };
    container.addEventListener("pointerover", open);
    container.addEventListener("focusin", open);
    container.addEventListener("pointerout", close);
    container.addEventListener("focusout", close);
    container.addEventListener("keydown", (event) => this.handleKey(event));
  }

  show(text, safeText, spans) {
    cancelAnimationFrame(this.waiting);
    this.pairs.clear();
    this.elements.clear();
    this.stops = [];
    this.current = undefined;
    this.container.replaceChildren();
    this.texts = [text, safeText];
    this.rows = makeRows(text, safeText, spans);
    this.nextRow = 0;
    this.makeRows(200);
  }

  makeRows(n) {
    const fragment = document.createDocumentFragment();
    for (; n > 0 && this.nextRow < this.rows.length; n--, this.nextRow++) {
      const { sides, spans } = this.rows[this.nextRow];
      const cells = sides.map(({ start, end }, side) => {
        const cell = make("div", { class: "text", dir: "auto" });
        this.fill(cell, side, start, end, spans);
        return cell;
      });
      fragment.append(make("div", { class: "row" }, ...cells));
    }
    this.container.append(fragment);
    if (this.nextRow < this.rows.length) {
      this.waiting = requestAnimationFrame(() => this.makeRows(200));
    }
  }

  fill(cell, side, start, end, spans) {
    const [first, last] = side ? ["safe_start", "safe_end"] : ["start", "end"];
    let at = start;
    for (const span of spans) {
      if (span[first] < at) continue; // overlaps the span before
      appendText(cell, this.texts[side].slice(at, span[first]));
      const part = this.texts[side].slice(span[first], span[last]);
      const mark = make("span", { class: `mark ${findHue(span.label)} ${part ? "" : "removed"}` });
      appendText(mark, part || say("removed"));
      cell.append(mark);
      this.pairs.set(mark, span);
      if (!this.elements.has(span)) this.elements.set(span, []);
      this.elements.get(span).push(mark);
      if (side === 0) mark.dataset.label = sayLabel(span.label);
      if (side === 1) this.addStop(mark);
      at = span[last];
    }
    appendText(cell, this.texts[side].slice(at, end));
  }

  addStop(mark) {
    mark.setAttribute("role", "button");
    mark.setAttribute("aria-describedby", "card");
    mark.tabIndex = this.current ? -1 : 0;
    this.current ??= mark;
    this.stops.push(mark);
  }

  moveTo(mark) {
    if (this.current) this.current.tabIndex = -1;
    mark.tabIndex = 0;
    this.current = mark;
  }

  light(span) {
    for (const lit of this.container.querySelectorAll(".lit")) lit.classList.remove("lit");
    for (const element of this.elements.get(span) ?? []) element.classList.add("lit");
  }

  handleKey(event) {
    const at = this.stops?.indexOf(event.target) ?? -1;
    if (at < 0) return;
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    const goal = { Home: 0, End: this.stops.length - 1 }[event.key] ?? at + (step ?? NaN);
    if (Number.isNaN(goal)) return;
    this.stops[goal]?.focus();
    event.preventDefault();
  }
}

// The text between two spans is the same on both sides, so its line ends are where rows can end.
function makeRows(text, safeText, spans) {
  const rows = [];
  let [at, safeAt] = [0, 0]; // beginning of the row
  let [from, safeFrom] = [0, 0]; // end of the span before
  let inRow = [];
  const endRow = (end, safeEnd) => {
    rows.push({
      sides: [
        { start: at, end },
        { start: safeAt, end: safeEnd },
      ],
      spans: inRow,
    });
    [at, safeAt, inRow] = [end, safeEnd, []];
  };
  for (const span of [...spans, { start: text.length, end: text.length }]) {
    for (let place = findEnd(text, at, from, span.start); place; ) {
      endRow(place, safeFrom + place - from);
      place = findEnd(text, at, place, span.start);
    }
    if (span.label !== undefined) {
      inRow.push(span);
      [from, safeFrom] = [span.end, span.safe_end];
    }
  }
  if (at < text.length || safeAt < safeText.length) endRow(text.length, safeText.length);
  return rows;
}

// Where the row that begins at `at` can end between `from` and `to`; 0 if nowhere.
function findEnd(text, at, from, to) {
  const line = text.indexOf("\n", from) + 1;
  if (line > 0 && line <= to && line <= Math.max(from, at + LONGEST)) return line;
  if (at + LONGEST < to) {
    const space = text.indexOf(" ", Math.max(from, at + LONGEST)) + 1;
    if (space > 0 && space <= to && !(line > 0 && line < space)) return space;
  }
  return line > 0 && line <= to ? line : 0;
}
