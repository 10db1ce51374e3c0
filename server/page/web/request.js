// Requests for answers, and their streams.
import { call, events, hasKey } from "./api.js";

// fields are the settings of a request: name, what it is called, its kind.
export const fields = [
  ["temperature", "Temperature", "number", { min: 0, step: 0.1 }],
  ["top_k", "Top k", "number", { min: 0, step: 1 }],
  ["top_p", "Top p", "number", { min: 0, max: 1, step: 0.05 }],
  ["min_p", "Min p", "number", { min: 0, max: 1, step: 0.01 }],
  ["repeat_penalty", "Repetition penalty", "number", { min: 0, step: 0.05 }],
  ["max_tokens", "Longest answer, tokens", "number", { min: 1, step: 1 }],
  ["seed", "Seed", "number", { min: 0, step: 1 }],
];

// body makes the request for the messages, as any client of OpenAI's API would.
export function body(model, settings, messages) {
  const b = { model, messages: [] };
  if (settings.system) b.messages.push({ role: "system", content: settings.system });
  for (const m of messages) b.messages.push({ role: m.role, content: m.content });
  for (const [name] of fields) if (settings[name] != null && settings[name] !== "") b[name] = Number(settings[name]);
  if (settings.stop?.length) b.stop = settings.stop;
  if (settings.schema) {
    b.response_format = { type: "json_schema", json_schema: { name: "answer", strict: true, schema: JSON.parse(settings.schema) } };
  }
  if (settings.tools) b.tools = JSON.parse(settings.tools);
  return b;
}

// withSeed gives a request a seed, so that the answer can be had again.
export function withSeed(b) {
  return b.seed == null ? { ...b, seed: crypto.getRandomValues(new Uint32Array(1))[0] >>> 1 } : b;
}

// stream sends a request and gives what comes, until the end or until signal
// aborts: { content, reasoning, calls, tokens, progress, finish, usage, timings }.
export async function* stream(b, signal) {
  const began = performance.now();
  const r = await call("/v1/chat/completions", { body: { ...b, stream: true, stream_options: { include_usage: true }, return_progress: true, ridge_trace: true }, signal });
  let first = null;
  for await (const { data } of events(r)) {
    if (data.error) throw new Error(data.error.message || String(data.error));
    const choice = data.choices?.[0];
    const out = { progress: data.prompt_progress, usage: data.usage || undefined, timings: data.timings };
    if (choice) {
      out.content = choice.delta?.content || "";
      out.reasoning = choice.delta?.reasoning_content || choice.delta?.reasoning || "";
      out.calls = choice.delta?.tool_calls;
      out.tokens = choice.ridge_trace;
      out.finish = choice.finish_reason;
      if (first == null && (out.content || out.reasoning || out.calls)) first = performance.now() - began;
    }
    out.first = first;
    yield out;
  }
}

// collect joins what stream gives in node, and calls changed after each part.
export async function collect(node, b, signal, changed) {
  // What was asked for is kept without the messages before, which the tree has.
  const { messages, add_generation_prompt, continue_final_message, ...asked } = b;
  node.meta = { seed: b.seed, model: b.model, asked, system: messages[0]?.role === "system" ? messages[0].content : "" };
  node.tokens ??= [];
  const began = performance.now();
  try {
    for await (const part of stream(b, signal)) {
      node.content += part.content || "";
      if (part.reasoning) node.reasoning = (node.reasoning || "") + part.reasoning;
      for (const c of part.calls || []) joinCall(node.calls ??= [], c);
      if (part.tokens) node.tokens.push(...part.tokens);
      node.progress = part.content || part.reasoning || part.calls ? null : part.progress || node.progress;
      if (part.finish) node.meta.finish = part.finish;
      if (part.usage) node.meta.usage = part.usage;
      if (part.timings) node.meta.timings = part.timings;
      node.meta.first ??= part.first;
      changed();
    }
  } catch (e) {
    node.meta.finish = e.name === "AbortError" ? "stopped" : "error";
    if (e.name !== "AbortError") node.meta.error = e.message;
  }
  node.progress = null;
  node.meta.took = performance.now() - began;
  changed();
}

// joinCall adds a piece of a call of a tool.
function joinCall(calls, piece) {
  const c = calls[piece.index] ??= { name: "", arguments: "" };
  c.name += piece.function?.name || "";
  c.arguments += piece.function?.arguments || "";
}

const indent = (text, by) => text.replace(/\n/g, "\n" + by);

// asCode returns a request as a program would send it. The key is not in it: it is
// taken from the environment.
export function asCode(b, language) {
  const origin = location.origin, key = hasKey();
  const json = JSON.stringify(b, null, 2);
  const quoted = "'" + json.replace(/'/g, "'\\''") + "'";
  const known = ["model", "messages", "temperature", "top_p", "max_tokens", "seed", "stop", "response_format", "tools"];
  const extra = Object.fromEntries(Object.entries(b).filter(([k]) => !known.includes(k)));
  const python = (v, by) => indent(JSON.stringify(v, null, 4), by).replace(/("(?:[^"\\]|\\.)*")|\b(?:true|false|null)\b/g, (m, s) => s || { true: "True", false: "False", null: "None" }[m]);
  switch (language) {
    case "curl":
      return `curl ${origin}/v1/chat/completions -H 'Content-Type: application/json'${key ? ' -H "Authorization: Bearer $OPENAI_API_KEY"' : ""} -d ${quoted}`;
    case "Python":
      return `from openai import OpenAI\n\nclient = OpenAI(base_url="${origin}/v1"${key ? "" : ', api_key="none"'})\nanswer = client.chat.completions.create(\n` +
        Object.entries(b).filter(([k]) => known.includes(k)).map(([k, v]) => `    ${k}=${python(v, "    ")},\n`).join("") +
        (Object.keys(extra).length ? `    extra_body=${python(extra, "    ")},\n` : "") + ")\nprint(answer.choices[0].message.content)\n";
    default:
      return `package main

import (
	"encoding/json"
	"fmt"
	"log"
	"net/http"
${key ? '\t"os"\n' : ""}	"strings"
)

func main() {
	body := ${JSON.stringify(JSON.stringify(b))}
	r, err := http.NewRequest("POST", "${origin}/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		log.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
${key ? '\tr.Header.Set("Authorization", "Bearer "+os.Getenv("OPENAI_API_KEY"))\n' : ""}	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		log.Fatal(err)
	}
	defer resp.Body.Close()
	var answer struct {
		Choices []struct{ Message struct{ Content string } }
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		log.Fatal(err)
	}
	if len(answer.Choices) == 0 {
		log.Fatal(resp.Status)
	}
	fmt.Println(answer.Choices[0].Message.Content)
}
`;
  }
}
