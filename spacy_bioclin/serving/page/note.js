// The annotated note: blocks of sections and lines, with marks on the entities.

import { cutPieces, findHue, findKinds } from "./found.js";
import { appendText, make, makeText } from "./text.js";
import { say, sayLabel } from "./words.js";

const BLOCK = 2000; // characters after which a block ends with its line
const LONGEST = 20000; // and where it ends without one
const AT_ONCE = 10; // blocks that are made before the page is shown
const MOST_LANES = 4;

// Show a note in a container. Long notes are made block by block, so that the page answers at once.
// `onOpen(element, entities)` is called when a mark gets the pointer or the focus.
export class NoteView {
  constructor(container, { onOpen, onClose, onPick }) {
    this.container = container;
    this.marks = new Map(); // element -> entities over it
    this.elements = new Map(); // entity -> elements
    container.addEventListener("pointerover", (event) => {
      const mark = event.target.closest(".mark");
      if (mark) onOpen(mark, this.marks.get(mark));
    });
    container.addEventListener("pointerout", onClose);
    container.addEventListener("focusin", (event) => {
      if (this.marks.has(event.target)) {
        this.moveTo(event.target);
        onOpen(event.target, this.marks.get(event.target));
      }
    });
    container.addEventListener("focusout", onClose);
    container.addEventListener("click", (event) => {
      const mark = event.target.closest(".mark");
      if (mark) onPick(this.marks.get(mark)[0]);
    });
    container.addEventListener("keydown", (event) => this.handleKey(event, onPick));
  }

  show(text, sections, entities) {
    cancelAnimationFrame(this.waiting);
    this.text = text;
    this.marks.clear();
    this.elements.clear();
    this.stops = []; // marks at which an entity begins
    this.current = undefined;
    this.container.replaceChildren();
    this.blocks = makeBlocks(text, sections);
    this.pieces = cutPieces(
      entities,
      this.blocks.flatMap(({ start, end, title }) =>
        title ? [start, end, title.start, title.end] : [start, end],
      ),
    );
    this.begun = new Set();
    this.nextBlock = this.nextPiece = 0;
    this.makeBlocks(AT_ONCE);
  }

  makeBlocks(n) {
    const fragment = document.createDocumentFragment();
    for (; n > 0 && this.nextBlock < this.blocks.length; n--, this.nextBlock++) {
      fragment.append(this.makeBlock(this.blocks[this.nextBlock]));
    }
    this.container.append(fragment);
    if (this.nextBlock < this.blocks.length) {
      this.waiting = requestAnimationFrame(() => this.makeBlocks(AT_ONCE));
    }
  }

  makeBlock({ end, label, title, isFirst }) {
    const block = make("div", { class: "block" });
    if (label && isFirst) block.append(make("h3", {}, sayLabel(label)));
    const text = make("div", { class: "text", dir: "auto" });
    for (; this.nextPiece < this.pieces.length; this.nextPiece++) {
      const piece = this.pieces[this.nextPiece];
      if (piece.start >= end) break;
      const part = this.text.slice(piece.start, piece.end);
      if (piece.over.length) {
        text.append(this.makeMark(piece, part));
      } else if (title && piece.start >= title.start && piece.end <= title.end) {
        text.append(makeText("strong", part));
      } else {
        const line = part.trimEnd().length + 1; // end of the last line with text
        const isGap = piece.end === end && line < part.length && part[line - 1] === "\n";
        appendText(text, isGap ? part.slice(0, line) : part);
        if (isGap) text.append(make("span", { class: "gap" }, part.slice(line)));
      }
    }
    block.append(text);
    return block;
  }

  makeMark(piece, part) {
    const inner = piece.over[0];
    const kinds = findKinds(inner);
    const mark = make("span", { class: `mark ${findHue(inner.label)}` });
    const ended = piece.over.filter((each) => each.end === piece.end);
    if (ended.length) mark.dataset.label = ended.map(describeShortly).join(" · ");
    if (piece.over.length > 1 || inner.lane > 0) drawLanes(mark, piece.over);
    if (kinds.length) {
      mark.append(makeText("span", part, { class: kinds.join(" ") }));
    } else {
      appendText(mark, part);
    }
    this.marks.set(mark, piece.over);
    for (const entity of piece.over) {
      if (!this.elements.has(entity)) this.elements.set(entity, []);
      this.elements.get(entity).push(mark);
    }
    if (piece.over.some((each) => !this.begun.has(each))) {
      for (const each of piece.over) this.begun.add(each);
      mark.setAttribute("role", "button");
      mark.setAttribute("aria-describedby", "card");
      mark.tabIndex = this.current ? -1 : 0;
      this.current ??= mark;
      this.stops.push(mark);
    }
    return mark;
  }

  handleKey(event, onPick) {
    const at = this.stops?.indexOf(event.target) ?? -1;
    if (at < 0) return;
    const moves = {
      ArrowRight: at + 1,
      ArrowDown: at + 1,
      ArrowLeft: at - 1,
      ArrowUp: at - 1,
      Home: 0,
      End: Infinity,
    };
    if (event.key in moves) {
      if (event.key === "End") this.makeBlocks(Infinity);
      this.stops[Math.max(0, Math.min(moves[event.key], this.stops.length - 1))].focus();
    } else if (event.key === "Enter" || event.key === " ") {
      onPick(this.marks.get(event.target)[0]);
    } else {
      return;
    }
    event.preventDefault();
  }

  moveTo(mark) {
    if (this.current) this.current.tabIndex = -1;
    mark.tabIndex = 0;
    this.current = mark;
  }

  // Light the marks of some entities, and no others.
  light(entities, { scroll = false } = {}) {
    for (const lit of this.container.querySelectorAll(".lit")) lit.classList.remove("lit");
    const elements = entities.flatMap((each) => this.find(each));
    for (const element of elements) element.classList.add("lit");
    if (scroll && elements.length) scrollInside(this.container, elements[0]);
    return elements[0];
  }

  find(entity) {
    if (!this.elements.has(entity)) this.makeBlocks(Infinity);
    return this.elements.get(entity) ?? [];
  }

  focus(entity) {
    this.find(entity)
      .find((each) => this.stops.includes(each))
      ?.focus();
  }
}

// Scroll the container only, never the page, so that what has the focus stays where it is.
function scrollInside(container, element) {
  const [outer, inner] = [container.getBoundingClientRect(), element.getBoundingClientRect()];
  if (inner.top < outer.top + 40 || inner.bottom > outer.bottom - 40) {
    container.scrollTop += inner.top - outer.top - outer.height / 3;
  }
}

function describeShortly(entity) {
  const kinds = findKinds(entity).map((kind) => say(`${kind}_short`));
  return [sayLabel(entity.label), ...kinds].join(" ");
}

// A line below the text for each entity over it. Shadows are drawn the first on top.
function drawLanes(mark, over) {
  const shadows = [];
  const deepest = Math.min(Math.max(...over.map(({ lane }) => lane)), MOST_LANES - 1);
  for (let lane = 0; lane <= deepest; lane++) {
    const entity = over.find((each) => each.lane === lane);
    const colour = entity ? `var(--${findHue(entity.label)})` : "var(--sheet)";
    shadows.push(`0 ${4 * lane + 2}px 0 ${colour}`, `0 ${4 * lane + 4}px 0 var(--sheet)`);
  }
  mark.style.boxShadow = shadows.join(", ");
}

// Sections and what is between them, divided at line ends so that no block is long.
function makeBlocks(text, sections) {
  const spans = [];
  let at = 0;
  for (const section of [...sections, { start: text.length, end: text.length }]) {
    const { start, end } = section;
    if (start < at) continue; // inside of the section before
    if (start > at) {
      const before = spans.at(-1);
      if (before && !text.slice(at, start).trim()) {
        before.end = start;
      } else {
        spans.push({ start: at, end: start });
      }
    }
    if (end > start) spans.push({ ...section });
    at = Math.max(at, end);
  }
  return spans.flatMap((span) => divide(text, span));
}

function divide(text, { start, end, label, title }) {
  const blocks = [];
  for (let at = start; at < end; ) {
    const line = text.indexOf("\n", Math.min(at + BLOCK, end)) + 1;
    let stop = line > 0 && line <= at + LONGEST ? line : at + LONGEST;
    if (isLow(text, stop)) stop += 1; // both halves of an emoji stay together
    blocks.push({ start: at, end: Math.min(stop, end), label, title, isFirst: at === start });
    at = stop;
  }
  return blocks;
}

function isLow(text, at) {
  return /[\udc00-\udfff]/.test(text[at] ?? "");
}
