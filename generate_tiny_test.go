package ridge

import (
	"context"
	"strings"
	"testing"

	"ridge/hub"
	"ridge/internal/testdata"
	"ridge/model"
	"ridge/text/chat"
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

// Options name the activations as the command line does, and mistakes are named.
func TestOptionsAct(t *testing.T) {
	for name, want := range map[string]model.Act{"": model.ActInt8, "int8": model.ActInt8, "int16": model.ActInt16} {
		m, err := OpenFile(testdata.Tiny, Options{Act: name})
		if err != nil {
			t.Fatal(err)
		}
		if got := m.Inner().Act(); got != want {
			t.Errorf("%q: activations as %v, want %v", name, got, want)
		}
		m.Close()
	}
	if _, err := OpenFile(testdata.Tiny, Options{Act: "int4"}); err == nil || !strings.Contains(err.Error(), `expected int8 or int16, found "int4"`) {
		t.Errorf("int4: %v", err)
	}
}
