package server

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"ridge/engine"
)

// kept are the members of requests whose texts are part of their shape.
var kept = []string{"type", "role", "name", "model", "status", "tool_choice", "syntax", "required", "enum", "format", "encoding", "effort", "display", "summary", "verbosity", "include", "media_type", "$schema", "$ref", "ttl", "phase"}

// withoutTexts replaces the texts of a recorded request and keeps its shape. key is the
// member's name; ids stand for those that programs draw.
func withoutTexts(key string, v any, ids map[string]string) any {
	switch v := v.(type) {
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			x := v[k]
			if k == "properties" || k == "$defs" { // members are names, not keys of the protocol
				for name, y := range x.(map[string]any) {
					x.(map[string]any)[name] = withoutTexts("", y, ids)
				}
				continue
			}
			v[k] = withoutTexts(k, x, ids)
		}
	case []any:
		for i := range v {
			v[i] = withoutTexts(key, v[i], ids)
		}
	case string:
		switch {
		case slices.Contains(kept, key):
			return v
		case key == "id" || strings.HasSuffix(key, "_id"):
			if ids[v] == "" {
				ids[v] = fmt.Sprintf("id_%d", len(ids)+1)
			}
			return ids[v]
		case key == "description":
			return "d"
		case strings.HasPrefix(v, "x-anthropic-billing-header:"):
			return "x-anthropic-billing-header: cc_version=1; cch=00000;"
		}
		var inner map[string]any
		if (key == "arguments" || key == "input") && json.Unmarshal([]byte(v), &inner) == nil {
			b, _ := json.Marshal(withoutTexts("", inner, ids)) // it was decoded
			return string(b)
		}
		return "text"
	}
	return v
}

// callID finds what is drawn anew for each call.
var callID = regexp.MustCompile(`"(id|call_id|item_id)":"[^"]*"`)

// What agents send, recorded with its texts replaced by TestAgentPrograms, is answered
// as the goldens say: the model is told of all functions under names that it can write,
// agents get their calls back under the names and in the items that they know, and the
// conversation so far is what the model reads.
func TestRecordedAgents(t *testing.T) {
	files, err := filepath.Glob("testdata/agents/*.json")
	if err != nil || len(files) < len(programs) {
		t.Fatalf("found %q: %v", files, err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		t.Run(name, func(t *testing.T) {
			var rec struct {
				Path string
				Body map[string]any
			}
			b, err := os.ReadFile(file)
			if err == nil {
				err = json.Unmarshal(b, &rec)
			}
			if err != nil {
				t.Fatal(err)
			}
			got := recordedAnswer(t, rec.Path, rec.Body)
			golden := strings.TrimSuffix(file, ".json") + ".txt"
			if *updateAgents {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			for i, line := range strings.SplitAfter(got, "\n") {
				lines := strings.SplitAfter(string(want), "\n")
				if i >= len(lines) || lines[i] != line {
					t.Fatalf("%s:%d: got %q, -update-agents writes it", golden, i+1, line)
				}
			}
			if len(got) != len(want) {
				t.Errorf("%s has %d bytes, got %d", golden, len(want), len(got))
			}
		})
	}
}

// toolOffered finds the names of the functions that a prompt tells of.
var toolOffered = regexp.MustCompile(`\{"type": "function", "function": \{"name": "([^"]*)"`)

// recordedAnswer sends a recorded request once for each tool that the model is offered,
// which it calls, and describes the prompt, what was left out, and the calls as the
// client gets them.
func recordedAnswer(t *testing.T, path string, body map[string]any) string {
	t.Helper()
	srv, b := scripted(t, "done")
	ask := func(stream bool) (http.Header, []byte) {
		body["stream"] = stream
		raw, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		status, h, answer := send(t, http.MethodPost, srv.URL+path, string(raw))
		if status != http.StatusOK {
			t.Fatalf("status %d: %s", status, answer)
		}
		return h, answer
	}
	h, _ := ask(false)
	var out strings.Builder
	for _, left := range h.Values("X-Ridge-Unenforced") {
		fmt.Fprintf(&out, "left out: %s\n", left)
	}
	prompt := promptOf(b)
	for _, m := range toolOffered.FindAllStringSubmatch(prompt, -1) {
		call := `{"name":` + strconv.Quote(m[1]) + `,"arguments":{"input":"x"}}`
		b.reply = func(*engine.Request, int) string { return "<tool_call>" + call + "</tool_call>" }
		_, whole := ask(false)
		_, stream := ask(true)
		item := callOf(t, whole)
		fmt.Fprintf(&out, "call %s: %s\n", m[1], item)
		names, _ := eventsOf(t, stream)
		if i := strings.Index(item, `"name":"`); i >= 0 && !strings.Contains(string(stream), item[i:i+strings.Index(item[i+8:], `"`)+9]) {
			t.Errorf("%s: no such name in the stream: %s", m[1], stream)
		}
		if len(names) < 3 {
			t.Errorf("%s: events %q", m[1], names)
		}
	}
	out.WriteString("prompt:\n" + prompt + "\n")
	return out.String()
}

// callOf returns the call of an answer, whatever its dialect, without its ids.
func callOf(t *testing.T, answer []byte) string {
	t.Helper()
	var o object
	if err := json.Unmarshal(answer, &o); err != nil {
		t.Fatal(err)
	}
	for _, at := range [][]any{{"choices", 0, "message", "tool_calls", 0}, {"output", 0}, {"content", 0}} {
		if item := o.at(at...); item != nil {
			b, err := json.Marshal(item)
			if err != nil {
				t.Fatal(err)
			}
			return callID.ReplaceAllString(string(b), `"$1":"ID"`)
		}
	}
	t.Fatalf("no call: %s", answer)
	return ""
}
