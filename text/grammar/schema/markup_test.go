package schema

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"

	"ridge/text/grammar/internal/grammartest"
)

func styled(style, schema string) string {
	return `{"format":{"type":"json_schema","style":"` + style + `","json_schema":` + schema + `}}`
}

// Strings stand between marks as they are and never have the closing one in them,
// other values are JSON, and what marks say of a type is true.
func TestMarkup(t *testing.T) {
	const text = `{"type":"object","properties":{"a":{"type":"string"},"n":{"type":["number","null"]}},"required":["a"],"additionalProperties":false}`
	const bounded = `{"type":"object","properties":{"a":{"type":"string","pattern":"^<?[a-z/]*$","maxLength":4}},"required":["a"],"additionalProperties":false}`
	const tree = `{"$defs":{"t":{"type":"object","properties":{"v":{"type":"integer"},"k":{"type":"array","items":{"$ref":"#/$defs/t"},"maxItems":2}},"required":["v"],"additionalProperties":false}},"$ref":"#/$defs/t"}`
	const pair = `{"type":"object","properties":{"p":{"prefixItems":[{"type":"string"}],"items":{"type":"integer"},"minItems":2,"maxItems":3}},"additionalProperties":false}`
	for _, c := range []struct {
		style, schema string
		good, bad     []string
	}{
		{"qwen_xml", text,
			[]string{"<parameter=a></parameter>", "\n<parameter=a>1 < 2 </param</parameter>\n<parameter=n>\n-1.5\n</parameter>\n", "<parameter=a>\"</parameter><parameter=n>null</parameter>"},
			[]string{"", "<parameter=n>1</parameter>", "<parameter=a>x</parameter><parameter=n>x</parameter>", "<parameter=a>x</parameter><parameter=b>x</parameter>", "<parameter=a>x</parameter>y"}},
		{"qwen_xml", bounded, []string{"<parameter=a><ab/</parameter>", "<parameter=a>ab</parameter>"}, []string{"<parameter=a>abcde</parameter>", "<parameter=a>A</parameter>", "<parameter=a></parameter></parameter>"}},
		{"qwen_xml", `{"properties":{"a":{"enum":["x","y</parameter>",{"b":[1]}]}},"additionalProperties":{"type":"boolean"}}`,
			[]string{"", "<parameter=a>x</parameter>", "<parameter=a>{\"b\": [1]}</parameter>", "<parameter=other_1>true</parameter>"},
			[]string{"<parameter=a>y</parameter></parameter>", "<parameter=a>z</parameter>", "<parameter=no name>true</parameter>", "<parameter=other>x</parameter>"}},
		{"deepseek_xml", text,
			[]string{`<｜DSML｜parameter name="a" string="true">5</｜DSML｜parameter><｜DSML｜parameter name="n" string="false">5</｜DSML｜parameter>`},
			[]string{`<｜DSML｜parameter name="a" string="false">5</｜DSML｜parameter>`, `<｜DSML｜parameter name="a" string="true">5</｜DSML｜parameter><｜DSML｜parameter name="n" string="true">5</｜DSML｜parameter>`}},
		{"glm_xml", text, []string{"<arg_key>a</arg_key>\n<arg_value>x</arg_value>\n<arg_key>n</arg_key><arg_value>2</arg_value>"}, []string{"<arg_key>a</arg_key>x</arg_value>"}},
		{"cohere_xml", tree,
			[]string{`<cofl:value name="v" type="json">1</cofl:value><cofl:value name="k" type="list"><cofl:value type="dict"><cofl:value name="v" type="json">2</cofl:value></cofl:value></cofl:value>`},
			[]string{`<cofl:value name="v" type="json">1</cofl:value><cofl:value name="k" type="list"><cofl:value type="dict"></cofl:value></cofl:value>`}},
		{"cohere_xml", pair,
			[]string{"", `<cofl:value name="p" type="list"><cofl:value type="raw">x</cofl:value><cofl:value type="json">1</cofl:value></cofl:value>`,
				`<cofl:value name="p" type="list"><cofl:value type="raw">x</cofl:value><cofl:value type="json">1</cofl:value><cofl:value type="json">2</cofl:value></cofl:value>`},
			[]string{`<cofl:value name="p" type="list"><cofl:value type="raw">x</cofl:value></cofl:value>`, `<cofl:value name="p" type="list"><cofl:value type="json">1</cofl:value><cofl:value type="json">1</cofl:value></cofl:value>`,
				`<cofl:value name="p" type="list"><cofl:value type="raw">x</cofl:value>` + strings.Repeat(`<cofl:value type="json">1</cofl:value>`, 3) + `</cofl:value>`}},
	} {
		g, err := StructuralTag(nil, []byte(styled(c.style, c.schema)), Options{})
		if err != nil {
			t.Errorf("%s: %s: %v", c.style, c.schema, err)
			continue
		}
		for _, text := range c.good {
			if err := grammartest.Accepts(g, text); err != nil {
				t.Errorf("%s: %s: %q: %v", c.style, c.schema, text, err)
			}
		}
		for _, text := range c.bad {
			if grammartest.Accepts(g, text) == nil {
				t.Errorf("%s: %s: %q is accepted", c.style, c.schema, text)
			}
		}
	}
	for schema, says := range map[string]string{
		`{"type":"string"}`:                         "schema of objects",
		`{"minProperties":2}`:                       "minProperties",
		`{"properties":{"a":{"const":[1]}}}`:        "const",
		`{"properties":{"a":{"uniqueItems":true}}}`: "uniqueItems",
	} {
		if _, err := StructuralTag(nil, []byte(styled("cohere_xml", schema)), Options{}); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: found %v, want %s", schema, err, says)
		}
	}
}

// Random walks over the masks of a real vocabulary: what is between the marks is,
// read back, what an independent validator finds valid.
func TestMarkupGenerations(t *testing.T) {
	v := grammartest.Real(t, "gpt-2")
	const schema = `{"type":"object","properties":{"text":{"type":"string"},"code":{"type":"string","pattern":"^[A-Z]{2}-[0-9]+$"},"n":{"type":"integer","minimum":-5,"maximum":20},"list":{"type":"array","items":{"enum":["a",1]},"maxItems":3}},"required":["code","n"],"additionalProperties":false}`
	g, err := StructuralTag(v, []byte(styled("qwen_xml", schema)), Options{})
	if err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(40) {
		text := grammartest.Generate(t, g, rand.New(rand.NewPCG(seed, 5)), 40)
		object := map[string]json.RawMessage{}
		for rest := strings.TrimSpace(text); rest != ""; rest = strings.TrimSpace(rest) {
			inside, ok := strings.CutPrefix(rest, "<parameter=")
			name, value, ok2 := strings.Cut(inside, ">")
			value, rest2, ok3 := strings.Cut(value, "</parameter>")
			if !ok || !ok2 || !ok3 {
				t.Fatalf("%q: no member at %q", text, rest)
			}
			rest = rest2
			if object[name] = json.RawMessage(value); name == "text" || name == "code" {
				object[name], _ = json.Marshal(strings.ToValidUTF8(value, "�"))
			}
		}
		whole, err := json.Marshal(object)
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if err := valid(validator(t, schema), string(whole)); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}
