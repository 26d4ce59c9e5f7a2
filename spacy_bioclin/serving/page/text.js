// Text of notes: offsets, and how it gets into the page.

// Characters that change the direction of what follows, shown by their names.
const CONTROLS = new Map([
  ["\u061c", "ALM"],
  ["\u200e", "LRM"],
  ["\u200f", "RLM"],
  ["\u202a", "LRE"],
  ["\u202b", "RLE"],
  ["\u202c", "PDF"],
  ["\u202d", "LRO"],
  ["\u202e", "RLO"],
  ["\u2066", "LRI"],
  ["\u2067", "RLI"],
  ["\u2068", "FSI"],
  ["\u2069", "PDI"],
]);
const CONTROL = /([\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069])/;

// The service counts code points, JavaScript UTF-16 units: an emoji is one of the former and two
// of the latter.
export function makeConverter(text) {
  if (!/[\ud800-\udfff]/.test(text)) return (offset) => offset;
  const places = new Uint32Array(text.length + 1);
  let n = 0;
  for (let at = 0; at < text.length; at += text.codePointAt(at) > 0xffff ? 2 : 1) {
    places[n++] = at;
  }
  places[n] = text.length;
  return (offset) => places[Math.min(offset, n)];
}

export function countCodePoints(text) {
  let n = text.length;
  for (const _ of text.matchAll(/[\ud800-\udbff][\udc00-\udfff]/g)) n -= 1;
  return n;
}

// Half of a pair of surrogates cannot be sent. Its replacement has the same length.
export function makeWellFormed(text) {
  return text.replace(
    /[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g,
    "\ufffd",
  );
}

// The only way in which text of a note gets into the page. A control of direction is alone in an
// isolated element, so that it has no effect on other text.
export function appendText(parent, text) {
  if (!CONTROL.test(text)) {
    parent.append(text);
    return;
  }
  for (const part of text.split(CONTROL)) {
    if (CONTROLS.has(part)) {
      parent.append(make("span", { class: "control", "data-name": CONTROLS.get(part) }, part));
    } else if (part) {
      parent.append(part);
    }
  }
}

export function makeText(tag, text, attributes = {}) {
  const element = make(tag, attributes);
  appendText(element, text);
  return element;
}

export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}
