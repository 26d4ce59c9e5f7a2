// What the service found, as the page shows it: entities of all layers, relations, pieces of text.

import { makeConverter } from "./text.js";

export const KINDS = ["negated", "uncertain", "historical", "family", "hypothetical"];
const OF_NO_TIME = ["age", "date"]; // measurements
export const PHI = "phi";
const N_HUES = 12;
const hues = new Map();

// Labels keep their hue as long as the page is open.
export function findHue(label) {
  if (!hues.has(label)) hues.set(label, hues.size % N_HUES);
  return `hue-${hues.get(label)}`;
}

export function readAnswer(text, answer) {
  const convert = makeConverter(text);
  const place = (span) => ({ ...span, start: convert(span.start), end: convert(span.end) });
  return {
    entities: mergeLayers(answer.entities.map(place)),
    sections: answer.sections
      .map((section) => ({ ...place(section), title: convertTitle(section, convert) }))
      .sort((a, b) => a.start - b.start),
    relations: answer.relations.map((each) => ({
      ...each,
      head: place(each.head),
      child: place(each.child),
    })),
    categories: answer.categories,
  };
}

function convertTitle({ title_start, title_end }, convert) {
  return title_start == null ? undefined : { start: convert(title_start), end: convert(title_end) };
}

// The same span with the same label in two layers is one entity of the page.
function mergeLayers(entities) {
  const merged = new Map();
  for (const entity of entities) {
    const key = JSON.stringify([entity.start, entity.end, entity.label]);
    const same = merged.get(key);
    if (same) {
      same.layers.push(entity.layer);
    } else {
      merged.set(key, { ...entity, layers: [entity.layer] });
    }
  }
  return [...merged.values()].sort((a, b) => a.start - b.start || b.end - a.end);
}

// Entities that overlap get different lanes, so that each has a line of its own below the text.
function giveLanes(entities) {
  const ends = [];
  for (const entity of entities) {
    let lane = ends.findIndex((end) => end <= entity.start);
    if (lane < 0) lane = ends.length;
    ends[lane] = entity.end;
    entity.lane = lane;
  }
}

// Cut a text wherever an entity begins or ends, and at the edges. Each piece knows the entities
// over it, the shortest first. The entities are in order of their starts.
export function cutPieces(entities, edges) {
  giveLanes(entities);
  const places = new Set(edges);
  for (const { start, end } of entities) places.add(start).add(end);
  const sorted = Uint32Array.from(places).sort();
  const pieces = [];
  let over = [];
  let next = 0;
  for (let i = 0; i + 1 < sorted.length; i++) {
    const [start, end] = [sorted[i], sorted[i + 1]];
    if (over.some((each) => each.end <= start)) over = over.filter((each) => each.end > start);
    let changed = false;
    for (; next < entities.length && entities[next].start <= start; next++) {
      if (entities[next].end > start) over.push(entities[next]);
      changed = true;
    }
    if (changed) over.sort((a, b) => a.end - a.start - (b.end - b.start));
    pieces.push({ start, end, over: [...over] });
  }
  return pieces;
}

export function isShown(entity, threshold) {
  return entity.probability == null || entity.probability >= threshold;
}

export function nameGroup(entity) {
  return JSON.stringify([entity.layers[0], entity.label]);
}

// Who the patient is, how old, and a date are neither over nor denied, whatever is said around them.
export function findKinds(entity) {
  const isFact =
    entity.layers.includes(PHI) ||
    (entity.layers.includes("measurements") && OF_NO_TIME.includes(entity.label));
  return KINDS.filter((kind) => entity[kind] && (!isFact || kind === "family"));
}
