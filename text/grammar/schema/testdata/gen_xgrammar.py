"""Writes xgrammar.jsonl: schemas and texts that the tests of XGrammar
(https://github.com/mlc-ai/xgrammar, Apache-2.0, tests/python, August 2026) try,
each text with what jsonschema 4.26 says of it, with its format checks. Which texts
XGrammar itself takes does not count. Of a schema at most six valid texts and eight
others are kept, of the many like it (counts of four members) every eighth.

pip install xgrammar jsonschema[format] pytest pydantic transformers torch
In xgrammar/tests/python: python gen_xgrammar.py record, which runs its tests and
notes what they try in cases.jsonl; then python gen_xgrammar.py > xgrammar.jsonl
Likewise python gen_xgrammar.py tags, which writes xgrammar_tags.jsonl: structural tags, those
left out whose texts have more white space than one space, and texts, each with what XGrammar itself says.
"""
import collections, json, sys


def record():
    import pytest, xgrammar as xgr, xgrammar.testing as testing
    out, sources, kept = open('cases.jsonl', 'w'), {}, []
    compile_schema, accept = xgr.Grammar.from_json_schema, testing._is_grammar_accept_string

    def from_schema(*a, **k):
        g = compile_schema(*a, **k)
        s = a[0] if a else next(iter(k.values()))
        kept.append(g)  # so that no other gets its id
        sources[id(g)] = s.model_json_schema() if isinstance(s, type) else json.loads(s) if isinstance(s, str) else s
        return g

    def accepts(g, text, *a, **k):
        if id(g) in sources and isinstance(text, str):
            out.write(json.dumps([sources[id(g)], text]) + '\n')
        return accept(g, text, *a, **k)

    xgr.Grammar.from_json_schema, testing._is_grammar_accept_string = staticmethod(from_schema), accepts
    pytest.main(['-q', '-k', 'schema'])


def write():
    import jsonschema
    checks = jsonschema.Draft202012Validator.FORMAT_CHECKER
    groups, alike = collections.OrderedDict(), 0
    for line in open('cases.jsonl'):
        s, text = json.loads(line)
        if '0000-' in text:
            continue  # the year 0, which RFC 3339 has and Python has not
        g = groups.setdefault(json.dumps(s), {'schema': s, 'good': [], 'bad': []})  # the order of members counts
        try:
            ok = not any(jsonschema.Draft202012Validator(s, format_checker=checks).iter_errors(json.loads(text)))
        except (ValueError, RecursionError):
            ok = False
        texts = g['good' if ok else 'bad']
        if text not in texts and len(texts) < (6 if ok else 8) and len(text) < 2000:
            texts.append(text)
    for key, g in groups.items():
        if '"key4"' in key:
            alike += 1
            if alike % 8:
                continue
        print(json.dumps(g, ensure_ascii=False, separators=(',', ':')))


def tags():
    import pytest, xgrammar as xgr, xgrammar.testing as testing
    groups, sources, kept = collections.OrderedDict(), {}, []
    compile_tag, accept = xgr.Grammar.from_structural_tag, testing._is_grammar_accept_string

    def from_tag(*a, **k):
        g = compile_tag(*a, **k)
        s = a[0] if a else next(iter(k.values()))
        kept.append(g)
        if len(a) + len(k) == 1:
            sources[id(g)] = s if isinstance(s, dict) else json.loads(s) if isinstance(s, str) else s.model_dump()
        return g

    def accepts(g, text, *a, **k):
        ok = accept(g, text, *a, **k)
        if id(g) in sources and isinstance(text, str) and len(text) < 1000:
            s = sources[id(g)]
            texts = groups.setdefault(json.dumps(s), {'tag': s, 'good': [], 'bad': []})['good' if ok else 'bad']
            if text not in texts:
                texts.append(text)
        return ok

    xgr.Grammar.from_structural_tag, testing._is_grammar_accept_string = staticmethod(from_tag), accepts
    pytest.main(['-q', '--assert=plain', '--tb=no', 'test_structural_tag_converter.py'])
    with open('xgrammar_tags.jsonl', 'w') as f:
        for key, g in groups.items():
            if not any(':  ' in text for text in g['good']):
                f.write(json.dumps(g, ensure_ascii=False, separators=(',', ':')) + '\n')


{'record': record, 'tags': tags}.get(''.join(sys.argv[1:]), write)()
