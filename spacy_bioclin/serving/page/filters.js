// Which labels are shown: a checkbox with a count for each, by layer.

import { PHI, findHue, isShown, nameGroup } from "./found.js";
import { make } from "./text.js";
import { say, sayLabel, sayLayer, sayNumber } from "./words.js";

const FIRST = ["ents"];
const CHOSEN_FROM = "clinical";
const LAST = ["measurements", CHOSEN_FROM, PHI];

export class Filters {
  constructor(container, onChange) {
    this.container = container;
    this.onChange = onChange;
    this.chosen = new Map(); // group of the user's choice -> shown or not
    this.groups = new Map();
  }

  // PHI has a view of its own, and doc.ents is chosen from clinical spans, so that neither is shown
  // among other entities at first.
  show(entities) {
    this.groups = countGroups(entities);
    const layers = [...new Set([...this.groups.values()].map(({ layer }) => layer))].sort(
      (a, b) => rank(a) - rank(b) || a.localeCompare(b),
    );
    const isOnlyPhi = layers.length === 1;
    this.container.replaceChildren();
    this.boxes = new Map();
    for (const layer of layers) {
      const isChosenFrom = layer === CHOSEN_FROM && layers.includes(FIRST[0]);
      const isHidden = (layer === PHI && !isOnlyPhi) || isChosenFrom;
      this.container.append(this.makeLayer(layer, !isHidden));
    }
  }

  makeLayer(layer, isShownAtFirst) {
    const labels = make("div", { class: "labels", role: "group", "aria-label": sayLayer(layer) });
    const boxes = [];
    let all = 0;
    for (const [name, { label, n, layer: own }] of this.groups) {
      if (own !== layer) continue;
      all += n;
      const box = make("input", { type: "checkbox" });
      box.checked = this.chosen.get(name) ?? isShownAtFirst;
      box.addEventListener("change", () => {
        this.chosen.set(name, box.checked);
        this.onChange();
      });
      const count = make("span", { class: "count" }, sayNumber(n));
      labels.append(
        make("label", { class: findHue(label) }, box, make("span", {}, sayLabel(label)), count),
      );
      this.boxes.set(name, { box, count });
      boxes.push([name, box]);
    }
    const title = make("summary", {}, make("span", {}, sayLayer(layer)), " ");
    title.append(make("span", { class: "count" }, sayNumber(all)));
    const details = make("details", {}, title, labels);
    details.open = boxes.some(([, box]) => box.checked);
    if (boxes.length > 1) details.append(this.makeSwitches(layer, boxes));
    return details;
  }

  makeSwitches(layer, boxes) {
    const makeSwitch = (isOn) => {
      const name = say(isOn ? "allOf" : "noneOf", { layer: sayLayer(layer) });
      const button = make("button", { type: "button", "aria-label": name });
      button.textContent = say(isOn ? "all" : "none");
      button.addEventListener("click", () => {
        for (const [group, box] of boxes) {
          box.checked = isOn;
          this.chosen.set(group, isOn);
        }
        this.onChange();
      });
      return button;
    };
    return make("div", { class: "all-none" }, makeSwitch(true), makeSwitch(false));
  }

  // Give the entities that are shown, and count those of each label above the threshold.
  choose(entities, threshold) {
    const above = entities.filter((each) => isShown(each, threshold));
    const counts = countGroups(above);
    for (const [name, { count }] of this.boxes) {
      count.textContent = sayNumber(counts.get(name)?.n ?? 0);
    }
    return above.filter((each) => this.boxes.get(nameGroup(each)).box.checked);
  }
}

function rank(layer) {
  if (FIRST.includes(layer)) return -1;
  return LAST.indexOf(layer) + 1;
}

function countGroups(entities) {
  const groups = new Map();
  for (const entity of entities) {
    const name = nameGroup(entity);
    const group = groups.get(name) ?? { layer: entity.layers[0], label: entity.label, n: 0 };
    group.n += 1;
    groups.set(name, group);
  }
  return new Map([...groups].sort(([, a], [, b]) => b.n - a.n || a.label.localeCompare(b.label)));
}
