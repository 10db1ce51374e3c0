package chat

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"ridge/internal/testdata"
)

// FuzzCompile: any template, with its probes and a conversation, in bounded
// time and without internal errors.
func FuzzCompile(f *testing.F) {
	for _, arch := range []string{"chatml", "gemma", "llama2", "mistral", "zephyr"} {
		f.Add(Default(arch), "user", "hello", `{"name": "f"}`)
	}
	f.Add("{{ messages | tojson(indent=2) }}{{ tools }}", "tool", "\x00\xff", `{"a": [1, 2.5, {"b": null}]}`)
	f.Fuzz(func(t *testing.T, source, role, content, object string) {
		if len(source)+len(content)+len(object) > 4096 {
			return
		}
		var err error
		testdata.Within(t, 30*time.Second, "a template", func() {
			var tmpl *Template
			tmpl, err = Compile(source, Options{BOS: "<s>", EOS: "</s>", Limits: Limits{Steps: 20_000, Bytes: 4 << 20, Time: 2 * time.Second}})
			if err == nil {
				_, err = tmpl.Render(Input{
					Messages: []Message{
						{Role: role, Content: content},
						{Role: "assistant", ToolCalls: []ToolCall{{ID: role, Name: content, Arguments: json.RawMessage(object)}}},
					},
					Tools: []json.RawMessage{json.RawMessage(object)},
				})
			}
		})
		if err != nil && strings.Contains(err.Error(), ": internal") {
			t.Errorf("internal error: %v", err)
		}
	})
}
