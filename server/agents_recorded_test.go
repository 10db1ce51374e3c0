package server

import (
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
)

// What coding agents send, recorded with their texts replaced, is answered: the model
// is told of all functions under names that it can write, and the agents get their
// calls back under the names that they know.
func TestRecordedAgents(t *testing.T) {
	for _, c := range []struct {
		file, path string
		offered    []string // some of the model's names
		left       []string
		call       string // that the model makes
		events     []string
		item       string // part of an event
	}{
		{"codex-0.171.json", "/v1/responses", []string{"exec_command", "write_stdin", "multi_agent_v1__spawn_agent", "multi_agent_v1__wait_agent", "update_goal"}, []string{"tool 8: web_search: left out: this server runs no tools itself"},
			`{"name":"multi_agent_v1__spawn_agent","arguments":{"message":"go"}}`,
			[]string{"response.created", "response.in_progress", "response.output_item.added", "response.function_call_arguments.delta", "response.function_call_arguments.done", "response.output_item.done", "response.completed"},
			`"namespace":"multi_agent_v1","name":"spawn_agent","arguments":"{\"message\":\"go\"}"`},
		{"claude-code-2.1.json", "/v1/messages?beta=true", []string{"Bash", "Edit", "Read", "TaskCreate", "WebSearch"}, nil,
			`{"name":"Bash","arguments":{"command":"ls"}}`,
			[]string{"message_start", "content_block_start", "content_block_delta", "content_block_stop", "message_delta", "message_stop"},
			`"name":"Bash"`},
	} {
		body, err := os.ReadFile("testdata/agents/" + c.file)
		if err != nil {
			t.Fatal(err)
		}
		srv, b := scripted(t, "<tool_call>"+c.call+"</tool_call>")
		status, h, answer := send(t, http.MethodPost, srv.URL+c.path, string(body))
		if status != http.StatusOK {
			t.Fatalf("%s: status %d: %s", c.file, status, answer)
		}
		prompt := promptOf(b)
		for _, name := range c.offered {
			if !strings.Contains(prompt, `"name": "`+name+`"`) {
				t.Errorf("%s: the model is not told of %s", c.file, name)
			}
		}
		if got := h.Values("X-Ridge-Unenforced"); !slices.Equal(got, c.left) {
			t.Errorf("%s: left out: got %q, want %q", c.file, got, c.left)
		}
		names, _ := eventsOf(t, answer)
		if names = slices.Compact(names); !slices.Equal(names, c.events) {
			t.Errorf("%s: events: got %q, want %q", c.file, names, c.events)
		}
		if !strings.Contains(string(answer), c.item) {
			t.Errorf("%s: no event has %s: %s", c.file, c.item, answer)
		}
	}
}
