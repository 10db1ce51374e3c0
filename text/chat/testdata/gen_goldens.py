"""Records what Python jinja2 makes of chat templates: goldens.json.

    python gen_goldens.py TEMPLATE_DIR [MODEL.gguf ...]

The environment is the one of transformers' apply_chat_template: immutable
sandbox, trim_blocks, lstrip_blocks, loop controls, the generation tag, and
json.dumps as tojson. Every template is rendered with every scenario of
scenarios.json, in every form that callers pass tool calls in (arguments as a
mapping or as text; content of a turn with only tool calls empty, None or
absent) and with absent tools as None and as undefined.

goldens.json: {"texts": [...], "templates": {name: {scenario: [index or -1 for
each form]}}}; -1 says that Python raised an error. The last form is that of
undefined tools.
"""
import json
import os
import sys

import jinja2
import jinja2.ext
from jinja2.sandbox import ImmutableSandboxedEnvironment

HERE = os.path.dirname(os.path.abspath(__file__))
FORMS = [(args, content) for content in ("empty", "none", "absent") for args in ("mapping", "text")]


class Generation(jinja2.ext.Extension):
    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_same"), [], [], body).set_lineno(line)

    def _same(self, caller):
        return caller()


def environment():
    def raise_exception(message):
        raise jinja2.exceptions.TemplateError(message)

    def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    env = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols]
    )
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    # 2024-07-26 14:03:09, a Friday
    import datetime

    now = datetime.datetime(2024, 7, 26, 14, 3, 9)
    env.globals["strftime_now"] = lambda format: now.strftime(format)
    return env


def message(m, form):
    args, content = form
    out = {}
    if "reasoning" in m:
        out["thinking"] = m["reasoning"]
    out["role"] = m["role"]
    calls = m.get("tool_calls")
    if m["content"] or not calls or content == "empty":
        out["content"] = m["content"]
    elif content == "none":
        out["content"] = None
    if calls:
        out["tool_calls"] = [
            {
                "id": c["id"],
                "type": "function",
                "function": {
                    "name": c["name"],
                    "arguments": c["arguments"] if args == "mapping" else json.dumps(c["arguments"], ensure_ascii=False),
                },
            }
            for c in calls
        ]
    for k in ("tool_call_id", "name"):
        if k in m:
            out[k] = m[k]
    if "reasoning" in m:
        out["reasoning_content"] = m["reasoning"]
    return out


def render(template, data, scenario, form, undefined_tools):
    kw = dict(data["extra"])
    kw["messages"] = [message(m, form) for m in scenario["messages"]]
    kw["add_generation_prompt"] = scenario["gen"]
    kw["bos_token"], kw["eos_token"], kw["documents"] = data["bos"], data["eos"], None
    if scenario.get("tools"):
        kw["tools"] = data["tools"]
    elif not undefined_tools:
        kw["tools"] = None
    return template.render(**kw)


def main():
    data = json.load(open(os.path.join(HERE, "scenarios.json"), encoding="utf-8"))
    sources = {}
    folder = sys.argv[1]
    for name in sorted(os.listdir(folder)):
        if name.endswith(".jinja"):
            sources[name] = open(os.path.join(folder, name), encoding="utf-8", newline="").read()
    for path in sys.argv[2:]:
        import gguf

        field = gguf.GGUFReader(path).fields.get("tokenizer.chat_template")
        sources[os.path.basename(path)] = bytes(field.parts[field.data[0]]).decode("utf-8")

    texts, index, templates = [], {}, {}
    env = environment()

    def record(fn):
        try:
            s = fn()
        except Exception:
            return -1
        if s not in index:
            index[s] = len(texts)
            texts.append(s)
        return index[s]

    for name, source in sources.items():
        template = env.from_string(source)
        templates[name] = {
            key: [record(lambda: render(template, data, sc, f, False)) for f in FORMS]
            + [record(lambda: render(template, data, sc, FORMS[0], True))]
            for key, sc in data["scenarios"].items()
        }
    out = os.environ.get("OUT", os.path.join(HERE, "goldens.json"))
    with open(out, "w", encoding="utf-8") as f:
        json.dump({"texts": texts, "templates": templates}, f, ensure_ascii=False, separators=(",", ":"))
        f.write("\n")


main()
