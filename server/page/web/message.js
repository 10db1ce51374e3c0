// A message of a conversation, and what can be done with it.
import { copy, count, fill, h, seconds } from "./dom.js";
import { Answer, turns } from "./markdown.js";
import { asCode } from "./request.js";
import { shaded } from "./tokens.js";

// message shows a node; acts are what its buttons do.
export function message(node, acts) {
  const user = node.role === "user";
  const text = user ? h("div", { class: "text", dir: "auto" }) : h("div", { class: "text" });
  const thought = h("details", { class: "thought", hidden: true }, h("summary", {}, "Reasoning"));
  const thoughtText = h("div", { class: "plain-text" });
  thought.append(thoughtText);
  const calls = h("div");
  const facts = h("div", { class: "facts" });
  const tools = h("div", { class: "tools" });
  const branch = h("span", { class: "branch" });
  const note = h("p", { class: "bad", role: "alert" });
  let answer = null, shownText = null, tokensShown = false, coming = false;

  const code = h("select", {
    "aria-label": "Copy as code", onchange: () => {
      if (code.value) copy(asCode(acts.request(node), code.value), null);
      code.value = "";
    },
  }, h("option", { value: "" }, "Copy as …"), ["curl", "Python", "Go"].map((l) => h("option", { value: l }, l)));

  const button = (label, f, title) => {
    const b = h("button", { type: "button", class: "plain", title, onclick: () => f(b) }, label);
    return b;
  };
  const tokens = button("Tokens", () => { tokensShown = !tokensShown; tokens.setAttribute("aria-pressed", tokensShown); shownText = null; update(coming); }, "Shade each token by its probability");

  const element = h("article", { class: "message " + node.role, "aria-label": user ? "You" : "Answer" }, thought, text, calls, note, facts, tools);

  function content() {
    if (shownText === node.content && !tokensShown) return;
    shownText = node.content;
    if (user) { text.textContent = turns(node.content); return; }
    if (tokensShown) {
      answer = null;
      fill(text, shaded(node.tokens, (i, token) => acts.branch(node, i, token)));
      return;
    }
    if (!answer || !text.contains(answer.element)) fill(text, (answer = new Answer()).element);
    answer.show(node.content);
  }

  function fact(m) {
    const t = m.timings, u = m.usage;
    const out = [];
    const add = (label, value, title) => value != null && out.push(h("span", { title }, h("b", {}, value), " " + label));
    if (t) {
      add("to the first token", seconds((t.first_token_ms ?? m.first) / 1000), "from the request's arrival");
      if (t.predicted_n > 1) add("tokens/s", t.predicted_per_second.toFixed(1), `${count(t.predicted_n)} tokens`);
      if (t.read_limit_percent != null) add("of the read limit", t.read_limit_percent.toFixed(0) + "%", "how near the weights were read at the speed of the memory");
      if (t.draft_n) add("guessed tokens right", `${t.draft_n_accepted || 0} of ${t.draft_n}`, "tokens that were guessed ahead, and turned out right");
    }
    if (u) {
      add("prompt tokens", count(u.prompt_tokens));
      if (u.prompt_tokens_details?.cached_tokens) add("of them cached", count(u.prompt_tokens_details.cached_tokens), "tokens of the prompt that were found in the cache");
    }
    if (m.seed != null) add("seed", m.seed);
    if (m.finish === "length") add("", "cut at the longest answer");
    if (m.finish === "stopped") add("", "stopped");
    return out;
  }

  function update(now) {
    coming = now;
    content();
    if (user) {
      fill(tools, branch, button("Edit", () => acts.edit(node)), button("Copy", (b) => copy(node.content, b)));
      return;
    }
    thought.hidden = !node.reasoning;
    if (node.reasoning) thoughtText.textContent = turns(node.reasoning);
    element.setAttribute("aria-busy", now);
    fill(calls, (node.calls || []).map((c) => h("figure", { class: "code" }, h("figcaption", {}, "calls " + c.name), h("pre", { tabIndex: 0 }, turns(c.arguments)))));
    const m = node.meta || {};
    note.textContent = m.error || "";
    if (now) {
      const p = node.progress;
      fill(facts, node.content || node.reasoning ? null : h("span", { class: "quiet" }, p?.total ? `reading the prompt: ${count(p.processed)} of ${count(p.total)} tokens` : "…"));
      fill(tools);
      return;
    }
    fill(facts, fact(m));
    fill(tools, branch, button("Copy", (b) => copy(node.content, b)), button("Again", () => acts.again(node), "Another answer, as a branch"),
      button("Continue", () => acts.goOn(node), "Write on from here"), button("Edit", () => acts.edit(node)),
      node.tokens?.length ? tokens : null, code);
  }

  // branches shows which of the messages beside it this one is.
  function branches(ids) {
    const i = ids.indexOf(node.id);
    fill(branch, ids.length < 2 ? null : [
      h("button", { type: "button", class: "plain", "aria-label": "Previous branch", disabled: i === 0, onclick: () => acts.turn(ids[i - 1]) }, "‹"),
      ` ${i + 1}/${ids.length} `,
      h("button", { type: "button", class: "plain", "aria-label": "Next branch", disabled: i === ids.length - 1, onclick: () => acts.turn(ids[i + 1]) }, "›")]);
  }

  return { element, update, branches };
}
