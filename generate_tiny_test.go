package ridge

import (
	"context"
	"strings"
	"testing"

	"ridge/hub"
	"ridge/internal/testdata"
	"ridge/model"
	"ridge/text/chat"
	"ridge/weights/tensor"
)

// The embedded model needs neither disk nor network, and its answers look like
// English: words, of which few come twice in a row.
func TestTiny(t *testing.T) {
	m, err := Open(context.Background(), "tiny", Options{Hub: hub.Options{Dir: t.TempDir(), Offline: true}})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	for _, question := range []string{"Hello!", "Tell me a story about a dog.", "Why is the sky blue?"} {
		var b strings.Builder
		messages := []chat.Message{{Role: "user", Content: question}}
		for tok, err := range m.Chat(context.Background(), messages, Generation{MaxTokens: 60}) {
			if err != nil {
				t.Fatal(err)
			}
			b.WriteString(tok.Text)
		}
		words := strings.Fields(b.String())
		twice := 0
		for i := range len(words) - 1 {
			if words[i] == words[i+1] {
				twice++
			}
		}
		if len(words) < 3 || twice > 1 {
			t.Errorf("%s: %q", question, b.String())
		}
	}
}

// Options are types, whose names are those of the command line; mistakes are named.
func TestOptionTypes(t *testing.T) {
	for name, want := range map[string]model.Act{"": model.ActMixed, "mixed": model.ActMixed, "fine": model.ActFine, "int8": model.ActInt8, "int16": model.ActInt16} {
		act, err := model.ParseAct(name)
		if err != nil {
			t.Fatal(err)
		}
		m, err := OpenFile(testdata.Tiny, Options{Act: act})
		if err != nil {
			t.Fatal(err)
		}
		if got := m.Act(); got != want {
			t.Errorf("%q: activations as %v, want %v", name, got, want)
		}
		m.Close()
	}
	if _, err := model.ParseAct("int4"); err == nil || !strings.Contains(err.Error(), `expected bf16, bf16x2, int8, mixed, fine or int16, found "int4"`) {
		t.Errorf("int4: %v", err)
	}
	for name, want := range map[string]tensor.DType{"": tensor.F16, "f16": tensor.F16, "F32": tensor.F32, " q8_0": tensor.Q8_0} {
		kv, err := ParseKV(name)
		if err != nil {
			t.Fatal(err)
		}
		m, err := OpenFile(testdata.Tiny, Options{KV: kv})
		if err != nil {
			t.Fatal(err)
		}
		if got := m.m.Pool().DType(); got != want {
			t.Errorf("%q: keys and values as %v, want %v", name, got, want)
		}
		m.Close()
	}
	if _, err := ParseKV("q4_0"); err == nil || !strings.Contains(err.Error(), `expected f16, f32, bf16 or q8_0, found "q4_0"`) {
		t.Errorf("q4_0: %v", err)
	}
	for _, o := range []Options{{KV: KVBF16 + 1}, {Act: 7}, {Chunk: -1}} {
		if m, err := OpenFile(testdata.Tiny, o); err == nil {
			t.Errorf("%+v: no error", o)
			m.Close()
		}
	}
}
