package run

import (
	"reflect"
	"strings"
	"testing"

	"ridge/text/chat"
)

func TestOmission(t *testing.T) {
	in := []chat.Message{
		{Role: "system", Content: "x-anthropic-billing-header: a=1;"}, {Role: "system", Content: "x-anthropic-billing-header: b;\r\nBe brief.\nx-anthropic-billing-header is a header"},
		{Role: "user", Content: "x-anthropic-billing-header: mine"},
	}
	o, err := newOmission(nil)
	if err != nil {
		t.Fatal(err)
	}
	out, matched := o.from(in)
	want := []chat.Message{{Role: "system", Content: "Be brief.\nx-anthropic-billing-header is a header"}, in[2]}
	if !reflect.DeepEqual(out, want) || !reflect.DeepEqual(matched, []string{billingHeader}) || in[0].Content == "" {
		t.Errorf("got %+v, %q", out, matched)
	}
	if out, _ := o.from(in[:1]); len(out) != 1 || out[0].Content != "" {
		t.Errorf("of nothing else: %+v", out)
	}
	for _, patterns := range [][]string{{"none"}, {"a", "none"}} {
		if o, err = newOmission(patterns); err != nil {
			t.Fatal(err)
		}
		if out, matched := o.from(in); !reflect.DeepEqual(out, in) || matched != nil {
			t.Errorf("%q: got %+v, %q", patterns, out, matched)
		}
	}
	if out, _ := (*omission)(nil).from(in); !reflect.DeepEqual(out, in) {
		t.Errorf("none: %+v", out)
	}
	if o, err = newOmission([]string{"none", "[0-9]+"}); err != nil {
		t.Fatal(err)
	}
	if out, _ := o.from([]chat.Message{{Role: "system", Content: "1\n12 a\n13"}}); out[0].Content != "12 a\n" {
		t.Errorf("numbers: %+v", out)
	}
	if _, err := newOmission([]string{"("}); err == nil || !strings.Contains(err.Error(), `found "("`) {
		t.Errorf("a bad pattern: %v", err)
	}
}
