// Talking to the server: the same routes as any client, with the key that was
// asked once and is kept for the session.
import { ask, h } from "./dom.js";

const keyName = "ridge-key";

// Failure is an answer that says no.
export class Failure extends Error {
  constructor(status, message, body) {
    super(message);
    this.status = status;
    this.body = body;
  }
}

let asking = null; // one question at a time

// askKey asks for a key, and keeps it for the session.
function askKey(wrong) {
  asking ??= (async () => {
    const input = h("input", { type: "password", autocomplete: "off", required: true, "aria-label": "API key" });
    const v = await ask("This server wants a key", h("div", {}, wrong ? h("p", { class: "bad" }, "The key was not accepted.") : null,
      h("p", {}, "It is kept until the tab is closed."), input), [{ label: "Use it", value: () => input.value }]);
    asking = null;
    if (v) sessionStorage.setItem(keyName, v);
    return v;
  })();
  return asking;
}

// forgetKey lets the next call ask again.
export const forgetKey = () => sessionStorage.removeItem(keyName);
export const hasKey = () => sessionStorage.getItem(keyName) != null;

// call sends a request and returns the answer, which is one that says yes.
export async function call(path, { method, body, signal, quiet } = {}) {
  for (;;) {
    const headers = {};
    const key = sessionStorage.getItem(keyName);
    if (key) headers.Authorization = "Bearer " + key;
    if (body !== undefined) headers["Content-Type"] = "application/json";
    let r;
    try {
      r = await fetch(path, { method: method || (body === undefined ? "GET" : "POST"), headers, body: body === undefined ? undefined : JSON.stringify(body), signal });
    } catch (e) {
      if (e.name === "AbortError") throw e;
      throw new Failure(0, "The server does not answer.");
    }
    if (r.ok) return r;
    if (r.status === 401 && !quiet && await askKey(key != null)) continue;
    const text = await r.text();
    let message = text, parsed;
    try {
      parsed = JSON.parse(text);
      message = parsed.error?.message || parsed.error || parsed.message || text;
    } catch { /* an answer that is no JSON is shown as it is */ }
    throw new Failure(r.status, String(message || r.statusText), parsed);
  }
}

// get returns the JSON of an answer.
export const get = async (path, options) => (await call(path, options)).json();
// post sends JSON and returns the JSON of the answer.
export const post = async (path, body, options) => (await call(path, { ...options, body })).json();

// lines gives the lines of an answer as they come.
async function* lines(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) break;
    rest += value;
    const at = rest.split("\n");
    rest = at.pop();
    yield* at;
  }
  if (rest) yield rest;
}

// events gives the events of a stream: their name and their data, parsed.
export async function* events(response) {
  let name = "message", data = [];
  for await (let line of lines(response)) {
    line = line.replace(/\r$/, "");
    if (line === "") {
      const text = data.join("\n");
      if (text && text !== "[DONE]") yield { name, data: JSON.parse(text) };
      name = "message";
      data = [];
    } else if (line.startsWith("data:")) data.push(line.slice(5).trimStart());
    else if (line.startsWith("event:")) name = line.slice(6).trim();
  }
}

// jsonLines gives the objects of an answer that has one on each line.
export async function* jsonLines(response) {
  for await (const line of lines(response)) if (line.trim()) yield JSON.parse(line);
}
