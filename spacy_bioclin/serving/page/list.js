// The list of entities: one stop of the Tab key, arrows within.

import { findHue, findKinds } from "./found.js";
import { make, makeText } from "./text.js";
import { say, sayLabel, sayNumber, sayPercent } from "./words.js";

const AT_ONCE = 200;

export class EntityList {
  constructor({ list, empty, more }, { onOpen, onClose, onGo }) {
    Object.assign(this, { list, empty, more });
    this.entities = [];
    list.addEventListener("focusin", (event) => {
      const option = event.target.closest("[role=option]");
      if (option) this.select(option, onOpen);
    });
    list.addEventListener("focusout", onClose);
    list.addEventListener("click", (event) => event.target.closest("[role=option]")?.focus());
    list.addEventListener("keydown", (event) => {
      const at = [...list.children].indexOf(event.target);
      if (at < 0) return;
      if (event.key === "Enter" || event.key === " ") {
        onGo(this.entities[at]);
      } else if (!this.move(event.key, at)) {
        return;
      }
      event.preventDefault();
    });
    more.addEventListener("click", () => {
      const at = list.children.length;
      this.add(AT_ONCE);
      list.children[at]?.focus();
    });
  }

  show(entities) {
    this.entities = entities;
    this.list.replaceChildren();
    this.selected = undefined;
    this.list.hidden = entities.length === 0;
    this.empty.hidden = entities.length > 0;
    this.add(AT_ONCE);
  }

  add(n) {
    const from = this.list.children.length;
    const added = this.entities.slice(from, from + n).map(makeOption);
    if (from === 0 && added.length) added[0].tabIndex = 0;
    this.list.append(...added);
    const left = this.entities.length - this.list.children.length;
    this.more.hidden = left <= 0;
    this.more.textContent = say("more", { n: sayNumber(Math.min(left, AT_ONCE)) });
  }

  move(key, at) {
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10 };
    let goal = { Home: 0, End: this.entities.length - 1 }[key];
    if (key in steps) goal = Math.max(0, Math.min(at + steps[key], this.entities.length - 1));
    if (goal === undefined) return false;
    this.reach(goal).focus();
    return true;
  }

  reach(at) {
    if (at >= this.list.children.length) this.add(at + 1 - this.list.children.length);
    return this.list.children[at];
  }

  select(option, onOpen) {
    for (const each of this.list.querySelectorAll("[aria-selected=true], [tabindex='0']")) {
      each.setAttribute("aria-selected", "false");
      each.tabIndex = -1;
    }
    option.setAttribute("aria-selected", "true");
    option.tabIndex = 0;
    onOpen(option, this.entities[[...this.list.children].indexOf(option)]);
  }

  focus(entity) {
    const at = this.entities.indexOf(entity);
    if (at >= 0) this.reach(at).focus();
  }
}

function makeOption(entity) {
  const kinds = findKinds(entity);
  const text = makeText("bdi", entity.text, { class: ["mention", ...kinds].join(" ") });
  const about = [sayLabel(entity.label), ...kinds.map((kind) => say(kind))].join(" · ");
  const option = make(
    "div",
    { role: "option", "aria-selected": "false", tabindex: "-1", class: findHue(entity.label) },
    make("span", { class: "swatch" }),
    text,
    make("span", { class: "about" }, about),
  );
  if (entity.probability != null) {
    option.append(make("span", { class: "chance" }, sayPercent(entity.probability)));
  }
  return option;
}
