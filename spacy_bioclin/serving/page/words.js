// The words of the page in English and Spanish.

import { SPANISH } from "./labels.js";

const WORDS = {
  en: {
    skip: "Skip to the note",
    language: "Language",
    theme: "Theme",
    themeSystem: "System",
    themeLight: "Light",
    themeDark: "Dark",
    local:
      "The note goes only to the service at {address}. The page stores nothing, and loads nothing from anywhere else.",
    views: "Views",
    write: "Note",
    found: "Findings",
    safe: "De-identified",
    annotate: "Annotate",
    annotating: "Annotating…",
    cancel: "Cancel",
    cancelled: "Cancelled.",
    keyLabel: "API key",
    keyUse: "Use this key",
    keyKept: "The key stays in this tab until you close or reload it.",
    noteLabel: "Text of the note",
    noteHint: "Paste or write a note, then press Ctrl+Enter.",
    noteView: "Annotated note",
    size: "{n} characters",
    example: "Use an invented note",
    clear: "Clear",
    emptyNote: "There is no note. Paste or write one first.",
    tooLong: "The note is too long: it has {n} bytes, and the service takes at most {limit}.",
    done: "{n} entities in {seconds} s.",
    doneOne: "1 entity in {seconds} s.",
    otherLanguage: "The note seems to be in {guess}, but the pipeline reads {lang}.",
    unreachable: "The service cannot be reached. Check that it is still running.",
    unreadable: "The service sent an answer that is not JSON (status {status}).",
    failed: "The service answered with status {status}.",
    status_401: "This service needs an API key, or does not know the one given.",
    retry: "Try again in {seconds} s.",
    relations: "Relations",
    categories: "Classes of the note",
    sideLabel: "Filters and entities",
    filters: "Show",
    threshold: "Probability of at least",
    thresholdHelp: "What has no probability is always shown.",
    all: "All",
    none: "None",
    allOf: "Show all of {layer}",
    noneOf: "Show none of {layer}",
    entities: "Entities",
    listHelp: "Arrow keys move, Enter goes to the text.",
    shownOf: "{n} of {all}",
    previous: "Previous {n}",
    next: "Next {n}",
    restOfRelations: "{n} more are in the JSON.",
    nothing: "Nothing to show.",
    copy: "Copy JSON",
    download: "Download JSON",
    copyText: "Copy the safe note",
    copied: "Copied.",
    notCopied: "The browser does not allow copying. Download the file instead.",
    downloaded: "Downloaded as {name}.",
    jsonHelp: "The JSON has everything that the service found, whatever is shown here.",
    original: "Original",
    safeNote: "Safe note",
    pairView: "Original and safe note, line by line",
    safeHelp:
      "Point at a replacement, or move to it with the arrow keys, to see what it replaces. Check the safe note before you share it: no tool finds everything.",
    layer_ents: "Entities",
    layer_phi: "Protected health information",
    layer_measurements: "Measurements",
    layer_clinical: "Left out: overlap an entity",
    codes: "Codes",
    broader: "broader",
    section: "Section",
    probability: "Probability",
    value: "Value",
    concept: "Concept",
    notLinked: "Not linked. The closest concepts:",
    replacedBy: "Replaced by",
    removed: "(removed)",
    layer: "Layer",
    legend: "Key:",
    negated: "negated",
    uncertain: "uncertain",
    historical: "historical",
    family: "of the family",
    hypothetical: "hypothetical",
    negated_short: "neg.",
    uncertain_short: "unc.",
    historical_short: "hist.",
    family_short: "fam.",
    hypothetical_short: "hyp.",
  },
  es: {
    skip: "Saltar a la nota",
    language: "Idioma",
    theme: "Tema",
    themeSystem: "Sistema",
    themeLight: "Claro",
    themeDark: "Oscuro",
    local:
      "La nota se envía solo al servicio de {address}. La página no guarda nada ni carga nada de otro sitio.",
    views: "Vistas",
    write: "Nota",
    found: "Hallazgos",
    safe: "Desidentificada",
    annotate: "Anotar",
    annotating: "Anotando…",
    cancel: "Cancelar",
    cancelled: "Cancelado.",
    keyLabel: "Clave de API",
    keyUse: "Usar esta clave",
    keyKept: "La clave se queda en esta pestaña hasta que la cierre o la recargue.",
    noteLabel: "Texto de la nota",
    noteHint: "Pegue o escriba una nota y pulse Ctrl+Intro.",
    noteView: "Nota anotada",
    size: "{n} caracteres",
    example: "Usar una nota inventada",
    clear: "Vaciar",
    emptyNote: "No hay ninguna nota. Pegue o escriba una antes.",
    tooLong: "La nota es demasiado larga: tiene {n} bytes y el servicio admite {limit} como máximo.",
    done: "{n} entidades en {seconds} s.",
    doneOne: "1 entidad en {seconds} s.",
    otherLanguage: "La nota parece estar en {guess}, pero el modelo lee {lang}.",
    unreachable: "No se puede conectar con el servicio. Compruebe que sigue en marcha.",
    unreadable: "El servicio ha enviado una respuesta que no es JSON (estado {status}).",
    failed: "El servicio ha respondido con el estado {status}.",
    status_401: "Este servicio necesita una clave de API, o no conoce la que se ha dado.",
    status_413: "La nota es demasiado larga para este servicio.",
    status_429: "El servicio está ocupado.",
    status_503: "El servicio no ha podido anotar la nota a tiempo.",
    retry: "Vuelva a intentarlo en {seconds} s.",
    relations: "Relaciones",
    categories: "Clases de la nota",
    sideLabel: "Filtros y entidades",
    filters: "Mostrar",
    threshold: "Probabilidad mínima",
    thresholdHelp: "Lo que no tiene probabilidad se muestra siempre.",
    all: "Todo",
    none: "Nada",
    allOf: "Mostrar todo: {layer}",
    noneOf: "No mostrar nada: {layer}",
    entities: "Entidades",
    listHelp: "Las flechas mueven, Intro lleva al texto.",
    shownOf: "{n} de {all}",
    previous: "{n} anteriores",
    next: "{n} siguientes",
    restOfRelations: "Hay {n} más en el JSON.",
    nothing: "No hay nada que mostrar.",
    copy: "Copiar JSON",
    download: "Descargar JSON",
    copyText: "Copiar la nota segura",
    copied: "Copiado.",
    notCopied: "El navegador no permite copiar. Descargue el archivo.",
    downloaded: "Descargado como {name}.",
    jsonHelp: "El JSON tiene todo lo que ha encontrado el servicio, se muestre aquí o no.",
    original: "Original",
    safeNote: "Nota segura",
    pairView: "Original y nota segura, línea a línea",
    safeHelp:
      "Señale una sustitución, o vaya a ella con las flechas, para ver qué sustituye. Revise la nota segura antes de compartirla: ninguna herramienta lo encuentra todo.",
    layer_ents: "Entidades",
    layer_phi: "Información protegida",
    layer_measurements: "Medidas",
    layer_clinical: "Descartadas: solapan una entidad",
    codes: "Códigos",
    broader: "más amplio",
    section: "Sección",
    probability: "Probabilidad",
    value: "Valor",
    concept: "Concepto",
    notLinked: "Sin enlazar. Los conceptos más parecidos:",
    replacedBy: "Sustituido por",
    removed: "(eliminado)",
    layer: "Capa",
    legend: "Clave:",
    negated: "negado",
    uncertain: "dudoso",
    historical: "antecedente",
    family: "familiar",
    hypothetical: "hipotético",
    negated_short: "neg.",
    uncertain_short: "dud.",
    historical_short: "ant.",
    family_short: "fam.",
    hypothetical_short: "hip.",
  },
};

let current = WORDS.en;
let language = "en";

export function setLanguage(code) {
  language = code in WORDS ? code : "en";
  current = WORDS[language];
  document.documentElement.lang = language;
  for (const element of document.querySelectorAll("[data-say]")) {
    element.textContent = say(element.dataset.say);
  }
  for (const element of document.querySelectorAll("[data-say-label]")) {
    element.setAttribute("aria-label", say(element.dataset.sayLabel));
  }
  for (const element of document.querySelectorAll("[data-say-hint]")) {
    element.placeholder = say(element.dataset.sayHint);
  }
}

export function preferredLanguage() {
  return navigator.language.toLowerCase().startsWith("es") ? "es" : "en";
}

// Values replace their names in braces, once, so that a value with braces stays as it is.
export function say(key, values = {}) {
  return current[key].replace(/\{(\w+)\}/g, (_, name) => String(values[name]));
}

// Our own sentence about a status of the service, where there is one in this language.
export function sayStatus(status) {
  return current[`status_${status}`];
}

export function sayNumber(number, options) {
  return new Intl.NumberFormat(language, options).format(number);
}

export function sayPercent(probability) {
  return sayNumber(probability, { style: "percent", maximumFractionDigits: 1 });
}

export function sayLanguage(code) {
  return new Intl.DisplayNames([language], { type: "language" }).of(code);
}

export function sayLayer(layer) {
  return current[`layer_${layer}`] ?? sayLabel(layer);
}

// A label or a section; in Spanish those that are known, whatever the case of their letters.
export function sayLabel(label) {
  const name = label.toLowerCase();
  const known = language === "es" && Object.hasOwn(SPANISH, name);
  return known ? SPANISH[name] : name.replaceAll("_", " ");
}
