// Requests to the service that this page came from, and its errors as sentences.

import { say, sayStatus } from "./words.js";

let key = "";

export class Refusal extends Error {
  constructor(sentence, status) {
    super(sentence);
    this.status = status;
  }
}

// The key is in this variable only, never in a store of the browser.
export function useKey(value) {
  key = value;
}

export async function request(path, body, signal) {
  const headers = key ? { "X-API-Key": key } : {};
  const options = { headers, signal, cache: "no-store", credentials: "omit" };
  if (body !== undefined) {
    options.method = "POST";
    options.body = JSON.stringify(body);
    headers["Content-Type"] = "application/json";
  }
  let response;
  try {
    response = await fetch(path, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refusal(say("unreachable"), 0);
  }
  let answer;
  try {
    answer = await response.json();
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refusal(say("unreadable", { status: response.status }), response.status);
  }
  if (!response.ok) throw new Refusal(describeRefusal(answer, response), response.status);
  return answer;
}

function describeRefusal(answer, response) {
  const own = sayStatus(response.status);
  const sentence = own ?? makeSentence(answer?.error) ?? say("failed", { status: response.status });
  const seconds = Number(response.headers.get("Retry-After"));
  return seconds > 0 ? `${sentence} ${say("retry", { seconds })}` : sentence;
}

function makeSentence(error) {
  if (typeof error !== "string" || !error) return undefined;
  return `${error[0].toUpperCase()}${error.slice(1)}${error.endsWith(".") ? "" : "."}`;
}
