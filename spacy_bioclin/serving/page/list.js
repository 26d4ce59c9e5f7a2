// The list of entities: one stop of the Tab key, arrows within.

import { findHue, findKinds } from "./found.js";
import { make, makeText } from "./text.js";
import { say, sayLabel, sayNumber, sayPercent } from "./words.js";

const AT_ONCE = 200; // a page of the list

export class EntityList {
  constructor({ list, empty, previous, next }, { onOpen, onClose, onGo }) {
    Object.assign(this, { list, empty, previous, next });
    this.entities = [];
    this.first = 0; // number of the first entity of the page
    list.addEventListener("focusin", (event) => {
      const option = event.target.closest("[role=option]");
      if (option) this.select(option, onOpen);
    });
    list.addEventListener("focusout", onClose);
    list.addEventListener("click", (event) => event.target.closest("[role=option]")?.focus());
    list.addEventListener("keydown", (event) => {
      const at = this.first + [...list.children].indexOf(event.target);
      if (at < this.first) return;
      if (event.key === "Enter" || event.key === " ") {
        onGo(this.entities[at]);
      } else if (!this.move(event.key, at)) {
        return;
      }
      event.preventDefault();
    });
    previous.addEventListener("click", () => this.reach(this.first - AT_ONCE).focus());
    next.addEventListener("click", () => this.reach(this.first + AT_ONCE).focus());
  }

  show(entities) {
    this.entities = entities;
    this.list.hidden = entities.length === 0;
    this.empty.hidden = entities.length > 0;
    this.turnTo(0);
  }

  turnTo(first) {
    this.first = first;
    const page = this.entities.slice(first, first + AT_ONCE);
    this.list.replaceChildren(
      ...page.map((entity, i) => makeOption(entity, first + i + 1, this.entities.length)),
    );
    if (page.length) this.list.firstChild.tabIndex = 0;
    const left = this.entities.length - first - AT_ONCE;
    this.previous.hidden = first === 0;
    this.next.hidden = left <= 0;
    this.previous.textContent = say("previous", { n: sayNumber(AT_ONCE) });
    this.next.textContent = say("next", { n: sayNumber(Math.min(left, AT_ONCE)) });
  }

  move(key, at) {
    const last = this.entities.length - 1;
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10 };
    let goal = { Home: 0, End: last }[key];
    if (key in steps) goal = Math.max(0, Math.min(at + steps[key], last));
    if (goal === undefined) return false;
    this.reach(goal).focus();
    return true;
  }

  // Turn to the page of an entity, if it is not shown.
  reach(at) {
    const first = at - (at % AT_ONCE);
    if (first !== this.first) this.turnTo(first);
    return this.list.children[at - first];
  }

  select(option, onOpen) {
    for (const each of this.list.querySelectorAll("[aria-selected=true], [tabindex='0']")) {
      each.setAttribute("aria-selected", "false");
      each.tabIndex = -1;
    }
    option.setAttribute("aria-selected", "true");
    option.tabIndex = 0;
    onOpen(option, this.entities[Number(option.getAttribute("aria-posinset")) - 1]);
  }

  focus(entity) {
    const at = this.entities.indexOf(entity);
    if (at >= 0) this.reach(at).focus();
  }
}

function makeOption(entity, position, size) {
  const kinds = findKinds(entity);
  const text = makeText("bdi", entity.text, { class: ["mention", ...kinds].join(" ") });
  const about = [sayLabel(entity.label), ...kinds.map((kind) => say(kind))].join(" · ");
  const option = make(
    "div",
    {
      role: "option",
      "aria-selected": "false",
      "aria-posinset": position,
      "aria-setsize": size,
      "aria-describedby": "card",
      tabindex: "-1",
      class: findHue(entity.label),
    },
    make("span", { class: "swatch" }),
    text,
    make("span", { class: "about" }, about),
  );
  if (entity.probability != null) {
    option.append(make("span", { class: "chance" }, sayPercent(entity.probability)));
  }
  return option;
}
