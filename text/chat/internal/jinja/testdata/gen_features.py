"""Records what Python jinja2, in the environment of transformers' chat
templates, makes of the snippets in features.txt: features.json, a map of name
to text, or to null where Python raises an error.
"""
import datetime
import json
import os

import jinja2
import jinja2.ext
from jinja2.sandbox import ImmutableSandboxedEnvironment

HERE = os.path.dirname(os.path.abspath(__file__))


class Generation(jinja2.ext.Extension):
    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_same"), [], [], body).set_lineno(line)

    def _same(self, caller):
        return caller()


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


env = ImmutableSandboxedEnvironment(
    trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols]
)
env.filters["tojson"] = tojson
env.globals["raise_exception"] = raise_exception
now = datetime.datetime(2024, 7, 26, 14, 3, 9, 123456)
env.globals["strftime_now"] = now.strftime

variables = json.load(open(os.path.join(HERE, "vars.json"), encoding="utf-8"))


def main():
    out = {}
    text = open(os.path.join(HERE, "features.txt"), encoding="utf-8", newline="").read()
    for part in text.split("=== ")[1:]:
        name, source = part.split("\n", 1)
        if name.startswith("crlf"):
            source = source.replace("\n", "\r\n")
        assert name not in out, name
        try:
            out[name] = env.from_string(source).render(**variables)
        except Exception as e:
            out[name] = None
            if "fails" not in name and "lenient" not in name and "cannot" not in name and name != "raise_exception":
                print("error:", name, repr(e))
        else:
            if "fails" in name:
                print("no error:", name, out[name])
    with open(os.path.join(HERE, "features.json"), "w", encoding="utf-8") as f:
        json.dump(out, f, ensure_ascii=False, indent=0)
        f.write("\n")


if __name__ == "__main__":
    main()
