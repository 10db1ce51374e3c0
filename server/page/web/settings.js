// The settings of a conversation.
import { h, fill, say } from "./dom.js";
import { fields } from "./request.js";
import { defaults } from "./models.js";

// json checks that a text is an object of JSON; an empty one is none.
function json(text, what) {
  if (!text.trim()) return "";
  try {
    const v = JSON.parse(text);
    if (v && typeof v === "object") return "";
  } catch (e) { return `${what}: ${e.message}`; }
  return `${what}: expected an object of JSON`;
}

// panel edits settings in place, and calls changed.
export function panel(settings, changed) {
  const hints = {};
  const set = (name, value) => {
    if (value === "" || value == null) delete settings[name];
    else settings[name] = value;
    changed();
  };
  const input = ([name, label, type, props]) => {
    const e = h("input", { type, ...props, id: "set-" + name, value: settings[name] ?? "", oninput: () => e.checkValidity() && set(name, e.value === "" ? "" : Number(e.value)) });
    hints[name] = e;
    return h("div", { class: "field" }, h("label", { for: "set-" + name }, label), e);
  };
  const text = (name, label, check, props) => {
    const bad = h("p", { class: "bad", role: "alert" });
    const e = h("textarea", {
      id: "set-" + name, rows: 4, value: settings[name] || "", ...props, oninput: () => {
        bad.textContent = check ? check(e.value, label) : "";
        if (!bad.textContent) set(name, e.value);
      },
    });
    return h("div", { class: "field wide" }, h("label", { for: "set-" + name }, label), e, bad);
  };
  const stop = h("input", { id: "set-stop", value: (settings.stop || []).join(" "), placeholder: "texts, separated by spaces", oninput: () => set("stop", stop.value.split(/\s+/).filter(Boolean)) });
  const element = h("div", { class: "settings" });
  const show = () => fill(element,
    text("system", "System message"),
    fields.map(input),
    h("div", { class: "field" }, h("label", { for: "set-stop" }, "Stop at"), stop),
    text("schema", "Schema of the answer (JSON Schema)", json, { spellcheck: false, class: "mono" }),
    text("tools", "Tools (an array, as in OpenAI's API)", json, { spellcheck: false, class: "mono" }),
    h("div", { class: "field wide" }, h("button", {
      type: "button", onclick: () => {
        for (const k of Object.keys(settings)) delete settings[k];
        changed();
        show();
        if (element.model) element.defaultsOf(element.model);
      },
    }, "Back to the model's own settings")));
  show();

  // defaultsOf shows what model does where a field is empty.
  element.defaultsOf = async (model) => {
    element.model = model;
    try {
      const d = await defaults(model);
      for (const [name] of fields) {
        const v = d[name];
        hints[name].placeholder = v == null || v === -1 || name === "seed" ? (name === "seed" ? "by chance" : "none") : String(v);
      }
    } catch (e) { say(e.message, "error"); }
  };
  return element;
}
