// Answers as Markdown. What a model writes is text of a stranger: HTML in it
// stays text, pictures are not fetched, and characters that turn the direction of
// writing are shown. A long answer streams without slowing: blocks that are
// complete are rendered once.
import { Marked } from "./vendor/marked-18.2.1.js";
import purify from "./vendor/dompurify-3.5.0.js";
import { copy, h, wide } from "./dom.js";

const escape = (t) => t.replace(/[&<>"']/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" })[c]);

// Math stays text: its characters are not taken for emphasis.
const inlineMath = /^(?:\$\$[^$]+?\$\$|\$(?! )(?:[^$\\\n]|\\.)+?(?<! )\$(?!\d)|\\\([\s\S]+?\\\)|\\\[[\s\S]+?\\\])/;
const math = {
  name: "math", level: "inline",
  start: (src) => src.match(/\$|\\[([]/)?.index,
  tokenizer(src) {
    const m = inlineMath.exec(src);
    return m ? { type: "math", raw: m[0] } : undefined;
  },
  renderer: (t) => `<code class="math">${escape(t.raw)}</code>`,
};

const tableRows = 200; // of a table, more are not shown

const marked = new Marked({
  gfm: true, breaks: false,
  extensions: [math],
  renderer: {
    html: (t) => escape(t.text),
    image: (t) => `<a href="${escape(t.href)}">${escape(t.text || t.href)}</a>`,
    code: (t) => `<pre><code class="${escape("lang-" + (t.lang || "").split(/\s/)[0])}">${escape(t.text)}</code></pre>`,
    checkbox: (t) => t.checked ? "☑ " : "☐ ",
  },
});

const allowed = {
  ALLOWED_TAGS: ["p", "br", "hr", "em", "strong", "del", "code", "pre", "a", "ul", "ol", "li", "blockquote", "table", "thead", "tbody", "tr", "th", "td", "h1", "h2", "h3", "h4", "h5", "h6"],
  ALLOWED_ATTR: ["href", "class", "start", "align"],
  ALLOWED_URI_REGEXP: /^(?:https?|mailto):/i,
  ALLOW_DATA_ATTR: false, ALLOW_ARIA_ATTR: false, RETURN_DOM_FRAGMENT: true,
};

// turns shows the characters that change the direction of what follows.
export const turns = (t) => t.replace(/[\u202a-\u202e\u2066-\u2069\u200e\u200f]/g, (c) => `⟦U+${c.codePointAt(0).toString(16).toUpperCase()}⟧`);

// finish gives the parts of a rendered block what HTML does not say.
function finish(block) {
  for (const a of block.querySelectorAll("a")) {
    a.target = "_blank";
    a.rel = "noopener noreferrer nofollow";
    a.title = a.href;
  }
  for (const pre of block.querySelectorAll("pre")) {
    const code = pre.firstChild;
    const lang = code?.className?.replace("lang-", "") || "text";
    const button = h("button", { class: "plain", type: "button", onclick: () => copy(code.textContent, button) }, "copy");
    pre.replaceWith(h("figure", { class: "code" }, h("figcaption", {}, h("span", {}, lang), button), h("pre", { tabIndex: 0 }, code)));
  }
  for (const table of block.querySelectorAll("table")) {
    table.replaceWith(wide("table", table.cloneNode(true)));
  }
}

function render(tokens) {
  for (const t of tokens) {
    if (t.type === "table" && t.rows.length > tableRows) {
      const left = t.rows.length - tableRows;
      t.rows = t.rows.slice(0, tableRows);
      tokens = [...tokens, { type: "paragraph", raw: "", text: "", tokens: [{ type: "text", raw: "", text: `(${left} more rows)`, escaped: false }] }];
    }
  }
  const block = h("div", { class: "block", dir: "auto" }, purify.sanitize(marked.parser(tokens), allowed));
  finish(block);
  return block;
}

// Answer renders a text that grows.
export class Answer {
  constructor() {
    this.element = h("div", { class: "markdown" });
    this.done = 0; // characters whose blocks will not change
    this.tail = null; // the element of what is behind them
  }

  // show renders text, which begins with what was shown before.
  show(text) {
    text = turns(text);
    const tokens = marked.lexer(text.slice(this.done));
    // The last block may still grow, and so may a list before an empty line.
    let keep = tokens.length - 1;
    while (keep > 0 && (tokens[keep].type === "space" || tokens[keep - 1]?.type === "space" && tokens[keep - 2]?.type === "list")) keep--;
    this.tail?.remove();
    this.tail = null;
    for (let i = 0; i < keep; i++) {
      if (tokens[i].type !== "space") this.element.append(render([tokens[i]]));
      this.done += tokens[i].raw.length;
    }
    const rest = tokens.slice(keep).filter((t) => t.type !== "space");
    if (rest.length) this.element.append(this.tail = render(rest));
  }
}
