// Tokens: an answer shaded by the probability of each, and how any text is split.
import { post } from "./api.js";
import { count, fill, h, later, say, table } from "./dom.js";
import { turns } from "./markdown.js";
import { picker } from "./models.js";

// visible shows white space and control characters of a token.
export const visible = (t) => turns(t).replace(/ /g, "·").replace(/\n/g, "⏎").replace(/\t/g, "⇥");

// shade is how unlikely a token was, as one of ten steps.
const shade = (p) => p == null ? "p-none" : "p" + Math.min(9, Math.floor(-Math.log10(Math.max(p, 1e-4)) * 2.5));
const percent = (p) => p >= 0.0995 ? (100 * p).toFixed(1) + "%" : p >= 0.0001 ? (100 * p).toFixed(2) + "%" : "<0.01%";
const cuts = { top_k: "top k", top_p: "top p", min_p: "min p", typ_p: "typical p", top_n_sigma: "top n sigma", xtc: "XTC", grammar: "grammar", mirostat: "mirostat", dry: "DRY" };

// shaded shows tokens as they were drawn; a click on one shows what else there
// was, and branch(i, token) goes on from an alternative.
export function shaded(tokens, branch) {
  const detail = h("div", { class: "token-detail", "aria-live": "polite" }, h("span", { class: "quiet" }, "Click a token to see what else there was."));
  const one = (t, i) => h("button", {
    type: "button", class: ["token", shade(t.prob), t.forced ? "forced" : "", t.drafted ? "drafted" : "", t.picked ? "picked" : "", t.end ? "end" : ""].join(" "),
    title: t.prob == null ? "" : percent(t.prob), onclick: () => fill(detail, details(t, i, branch)),
  }, t.end ? "⏹" : t.text === "" ? "∅" : turns(t.text));
  return h("div", {}, h("div", { class: "tokens", dir: "auto" }, (tokens || []).map(one)), detail);
}

function details(t, i, branch) {
  const marks = [t.forced && "forced by the grammar", t.drafted && "drafted, then verified", t.picked && "picked by you", t.end && "the end of the answer"].filter(Boolean);
  return [
    h("p", {}, "Token ", count(i + 1), ": ", h("code", {}, visible(t.text)), t.id == null ? "" : ` (${t.id})`,
      t.prob == null ? "" : `, ${percent(t.prob)}`, t.entropy == null ? "" : `, entropy ${t.entropy.toFixed(2)} nats`,
      t.kept == null ? "" : `, ${count(t.kept)} left to draw from`, marks.length ? "; " + marks.join(", ") : ""),
    h("div", { class: "alternatives" }, table(["Token", "num Probability", "Removed by", "hidden Action"],
      h("tbody", {}, (t.top || []).map((a) => h("tr", { class: a.id === t.id ? "taken" : "" },
        h("td", {}, h("code", {}, visible(a.text))), h("td", { class: "num" }, percent(a.prob)), h("td", {}, a.cut ? cuts[a.cut] || a.cut : ""),
        h("td", {}, a.id === t.id ? "taken" : h("button", { type: "button", class: "plain", onclick: () => branch(i, a) }, "branch from here"))))))),
  ];
}

// view splits any text into the tokens of a model.
export function view() {
  const text = h("textarea", { rows: 6, value: "Any text, as the model reads it.", "aria-label": "Text", spellcheck: false });
  const out = h("div", { class: "tokens ids", role: "group", "aria-label": "Tokens" });
  const sum = h("p", { class: "quiet", role: "status" });
  const special = h("input", { type: "checkbox", id: "special" });
  const model = picker(null, () => show(), true);
  const show = later(150, async () => {
    if (!model.value) return;
    try {
      const r = await post("/tokenize", { model: model.value, content: text.value, with_pieces: true, add_special: special.checked, parse_special: special.checked });
      fill(out, r.tokens.slice(0, 5000).map((t, i) => h("span", { class: "token c" + (i % 6), title: "token " + t.id }, typeof t.piece === "string" ? visible(t.piece) : t.piece.map((b) => "⟨" + b.toString(16).padStart(2, "0") + "⟩").join(""), h("small", {}, t.id))));
      const size = new TextEncoder().encode(text.value).length;
      sum.textContent = `${count(r.tokens.length)} tokens, ${count(size)} bytes` + (r.tokens.length ? `, ${(size / r.tokens.length).toFixed(2)} bytes a token` : "") + (r.tokens.length > 5000 ? "; the first 5,000 are shown" : "");
    } catch (e) { say(e.message, "error"); }
  });
  text.oninput = special.onchange = show;
  return {
    element: h("section", { class: "page" }, h("h1", {}, "Tokens"), h("div", { class: "row" }, model, special, h("label", { for: "special" }, "special tokens")), text, sum, out),
    close() {},
  };
}
