# Texts that llguidance takes and refuses of grammars in Lark: python3 lark_goldens.py > lark_goldens.json
# (llguidance 1.9.1 from PyPI).
import json
from llguidance import LLMatcher, LLTokenizer

CASES = [
    ('start: "a" "b"', ["ab", "a b", "", "a"]),
    ('start: "a" "b"\n%ignore /[ ]+/', ["ab", "a b", "a   b", " ab", "ab "]),
    ('start: x* y?\nx: "a"\ny: "b"\n%ignore " "', ["", "a", "a a b", "b", " b", "aab"]),
    ('start: [x] y [x]\nx: A*\ny: "b" | "c" y\nA: "a"\n%ignore /[ \\n]/', ["b", "aab", "a a c\n b a", " b", "cb", "c c bb"]),
    ('?start: sum\n?sum: product | sum "+" product -> add | sum "-" product -> sub\n?product: atom | product "*" atom\n?atom: NUMBER | "-" atom | "(" sum ")"\n%import common.NUMBER\n%import common.WS_INLINE\n%ignore WS_INLINE',
     ["1", "1+2*3", "( 1 - 2.5 ) * -3", "1 +", "1 2", "(1", "1e5 + .5"]),
    ('start: a\na: a "x" | "y"', ["y", "yxx", "x", "xy"]),
    ('start: list\nlist: list "," item | item\nitem: /[0-9]+/ | "[" list "]"', ["1", "1,2,[3,4]", "[1", ",1"]),
    ('start: "a".."c" "X"i ~ 2..3 ["y"]', ["bxX", "cxxxy", "dxx", "ax", "axxxx"]),
    ('start: "a"{2} "b"{,2} "c"{1,} "d"~2', ["aacdd", "aabbccdd", "aabbbcdd", "aadd"]),
    ('start: A | B\nA: /[0-9]/ /[a-z]/{2}\nB: A "-" A', ["1ab", "1ab-2cd", "1ab-", "1 ab"]),
    ('start: /(?s:.)*x/', ["x", "a\nx", "a"]),
    ('start: /ab/i /c/s "\\"\\\\\\/\\n\\u00e9"', ['ABc"\\/\né', 'abc"\\/\ne']),
    ('start: LINES\nLINES: /[a-zA-Z \\n]*/ & ~/(?s:.*)\\n\\n(?s:.*)/', ["a\nb", "a\n\nb", "1", "\n"]),
    ('start: A\nA: /[a-z]+/ & ~"foo" & ~B | "1"\nB: "b" "ar"', ["foo", "bar", "fo", "food", "1", "11"]),
    ('start: A\nA: ~/[ab]/ & /[a-c]+/ "!"', ["a!", "cc!", "c!", "ab", "abc!"]),
    ('start: x "!"\nx[suffix="\\n"]: /.*/', ["foo\n!", "foo!", "a\nb\n!"]),
    ('start: x "!"\nx[stop="<end>"]: /(.|\\n)*/', ["foo<end>!", "a<e\n<end>!", "a<end>b<end>!", "foo!"]),
    ('start: x y\nx[lazy]: /.*b/\ny[capture="z"]: "b"? "c"', ["abc", "abbc", "aabc", "bc"]),
    ('start: ( foo | bar )* end\nend: TEXT\nTEXT: /(.|\\n)*/ & ~/(?s:.*)<f(?s:.*)/\nhd[lazy]: /(.|\\n)*/ "<f"\nfoo: hd "=foo>" /[0-9]+/ "</f>"\nbar: hd "=bar>" "x" "</f>"', ["hello", "a<f=foo>1</f>b", "a<f=foo>x</f>b", "<f=bar>x</f><f=foo>12</f>", "<f=baz>"]),
    ('start: W "."\nW: %regex {"substring_words": "foo  bar., baz"}', ["foo.", "  .", "fo.", "bar.,.", "foo ."]),
    ('start: %regex {"substring_chunks": ["abc", "de", "fg"]} "!"', ["!", "abcde!", "ab!", "defg!"]),
    ('start: %regex {"substring_chars": "ab c"} "!"', ["b c!", "bc!"]),
    ('start: "a" x "b"\nx: %json {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": false}\n%ignore " "', ['a{"n":1}b', 'a{"n":1} b', 'a{}b', 'a {"n":1}b']),
    ('start: TEXT | fun\nTEXT: /[^{](.|\\n)*/\nfun: %json {\n  "type": "object", // no comment of JSON\n }', None),
    ('start: TEXT | fun\nTEXT: /[^{](.|\\n)*/\nfun: %json {"const": {"a": 1}}  # a comment\n// another', ["no { call", '{"a":1}', '{"a":2}', "{"]),
    ('%llguidance {}\nstart: "a"\n\n\n | "b"  // or\n', ["a", "b", "ab"]),
    ('start: "a" |', ["a", "", "b"]),
    ('%import common (INT, WS)\n%import common.CNAME -> NAME\nstart: NAME "=" INT WS', ["x_1=23 ", "1=2 ", "x=1"]),
    ('%import common.ESCAPED_STRING\nstart: ESCAPED_STRING', ['"a"', '"a\\"b"', '"a', '"a"b"']),
    ('%import common.SIGNED_NUMBER\nstart: SIGNED_NUMBER ("," SIGNED_NUMBER)*', ["-1", "1.,+.5e-3", "1,,2", "--1"]),
    ('%import common.FLOAT\nstart: FLOAT "f"', ["1f", "1.f", "1e5f", ".5f"]),
    ('%import common.C_COMMENT\nstart: C_COMMENT', ["/**/", "/* a\n* b **/", "/* */ */", "/*"]),
    ('{"grammars": [{"lark_grammar": "start: \\"<\\" @obj \\">\\" @more?\\nA: \\"a\\""}, {"name": "obj", "json_schema": {"type": "boolean"}}, {"name": "more", "lark_grammar": "start: \\"x\\"+"}]}', ["<true>", "<false>xx", "<1>", "<true>y"]),
    ('start: value\nvalue: object | array | STRING | NUM | "true" | "false" | "null"\nobject: "{" [pair ("," pair)*] "}"\npair: STRING ":" value\narray: "[" [value ("," value)*] "]"\nSTRING: "\\"" CHAR* "\\""\nCHAR: /[^"\\\\\\x00-\\x1f]/ | "\\\\" (/["\\\\bfnrt]/ | "\\/" | "u" /[0-9a-f]{4}/)\nNUM: "-"? ("0" | /[1-9][0-9]*/)\n%ignore /[ \\t\\n]+/',
     ['{"a": [1, -2, true], "b" :{} }', '{"a"}', '[ ]', ' []', '"\\u00e9\\n"', '[1,]']),
    ('start: a "b"\na:\n | "x"', ["b", "xb", "x"]),
    ('start: A "b"\nA: /[0-9]+/\nA: "x"', None),
    ('start: b', None),
    ('start: A\nA: "x" A | "y"', None),
    ('start: A\nA: "x" b\nb: "y"', None),
    ('start: "a" ~ 3..2', None),
    ('start: "z".."a"', None),
    ('start: "ab".."c"', None),
    ('s: "a"', None),
    ('start: (', None),
    ('start: "a', None),
    ('start: /a', None),
    ('%import python.NAME\nstart: NAME', None),
    ('%import common.NOTHING\nstart: NOTHING', None),
    ('%declare X\nstart: X', None),
    ('start: @none', None),
    ('start: %json {', None),
    ('start: %regex {"substring": 1}', None),
    ('start[what]: "a"', None),
    ('start: "a" & "b"', None),
]

tok = LLTokenizer("byte")


def takes(grammar, text):
    m = LLMatcher(tok, grammar)
    if m.get_error():
        return None
    ids = tok.tokenize_str(text)
    return m.try_consume_tokens(ids) == len(ids) and m.is_accepting()


out = []
for grammar, texts in CASES:
    if texts is None:
        assert LLMatcher(tok, grammar).get_error(), grammar
        out.append({"grammar": grammar})
        continue
    got = {t: takes(grammar, t) for t in texts}
    assert None not in got.values(), (grammar, LLMatcher(tok, grammar).get_error())
    out.append({"grammar": grammar, "good": [t for t in texts if got[t]], "bad": [t for t in texts if not got[t]]})
print("[\n" + ",\n".join(json.dumps(c, ensure_ascii=False) for c in out) + "\n]")
