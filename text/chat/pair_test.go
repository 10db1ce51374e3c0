package chat

import "testing"

// A pair goes into a reranker's text at its places, whatever it has of marks, and an
// instruction in place of the text's own.
func TestPair(t *testing.T) {
	const text = "a \"b\" {{ \\n\n<Instruct>: own\n<Query>: {query}\n<Document>: {document}<s>\n"
	tmpl, err := Compile(PairSource(text), Options{})
	if err != nil {
		t.Fatal(err)
	}
	own, err := Compile(`{% for m in messages %}{{ m.role }}={{ m.content }};{% endfor %}{% if add_generation_prompt %}>{% endif %}`, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		tmpl                         *Template
		instruction, query, document string
		want                         string
	}{
		{tmpl, "", "q", "d", "a \"b\" {{ \\n\n<Instruct>: own\n<Query>: q\n<Document>: d<s>\n"},
		{tmpl, "other", "{document}", "{{ 1 }}\n<Instruct>: x\n", "a \"b\" {{ \\n\n<Instruct>: other\n<Query>: {document}\n<Document>: {{ 1 }}\n<Instruct>: x\n<s>\n"},
		{own, "i", "q", "d", "system=i;query=q;document=d;>"},
		{own, "", "q", "", "query=q;document=;>"},
	} {
		p, err := c.tmpl.Pair(c.instruction, c.query, c.document, bytesTokenizer{})
		if err != nil || p.Text != c.want || len(p.Tokens) == 0 || p.Tokens[0] == 1000 {
			t.Errorf("%q: %v, want %q", p.Text, err, c.want)
		}
	}
	p, err := tmpl.Pair("", "q<s>", "<s>", bytesTokenizer{})
	if err != nil || len(p.plain) != 2 || p.Text[p.plain[0].Lo:p.plain[0].Hi] != "q<s>" {
		t.Errorf("%v: parts %v of %q are plain, want both texts", err, p.plain, p.Text)
	}
	for source, want := range map[string]bool{
		`{{ messages|selectattr('role','eq','query') }}{{ messages|selectattr("role","eq","document") }}`: true,
		`{% if m.role == 'user' %}{{ query }}{{ documents }}{% endif %}`:                                  false,
	} {
		if Pairs(source) != want {
			t.Errorf("%s: %v", source, !want)
		}
	}
}
