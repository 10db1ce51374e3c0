package server

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"ridge/engine"
	"ridge/internal/testdata"
)

// agentTurns are the requests of a recorded conversation, of its first turn and with what
// became of it, for answers of a few tokens.
func agentTurns(t *testing.T, file string) (path string, bodies []string) {
	t.Helper()
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
	list, most := "messages", "max_tokens"
	if rec.Body[list] == nil {
		list, most = "input", "max_output_tokens"
	}
	delete(rec.Body, "max_completion_tokens")
	delete(rec.Body, "thinking")
	rec.Body["model"], rec.Body["stream"], rec.Body["temperature"], rec.Body[most] = "tiny", false, 0, 6
	items := rec.Body[list].([]any)
	first := slices.IndexFunc(items, func(x any) bool {
		item := x.(map[string]any)
		typ, _ := item["type"].(string)
		return item["role"] == "assistant" || strings.HasSuffix(typ, "_call") || typ == "reasoning"
	})
	if first < 1 {
		t.Fatalf("%s: no answer in the recorded conversation", file)
	}
	for _, n := range []int{first, len(items)} {
		rec.Body[list] = items[:n]
		b, err := json.Marshal(rec.Body)
		if err != nil {
			t.Fatal(err)
		}
		bodies = append(bodies, string(b))
	}
	return rec.Path, bodies
}

// withoutIDs removes from an answer what no two have in common.
func withoutIDs(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for _, k := range []string{"id", "created", "created_at", "usage", "timings", "call_id", "service_tier"} {
			delete(v, k)
		}
		for _, x := range v {
			withoutIDs(x)
		}
	case []any:
		for _, x := range v {
			withoutIDs(x)
		}
	}
	return v
}

// Ten agents at once on one server, with pauses between their turns: every answer is
// that of a run with nobody else, and nothing is found in a cache there.
func TestAgentsTogether(t *testing.T) {
	files, err := filepath.Glob("testdata/agents/*.json")
	if err != nil || len(files) != len(programs) {
		t.Fatalf("found %q: %v", files, err)
	}
	if testing.Short() {
		files = files[2:5]
	}
	replay := func(url string, file string, pause time.Duration) (answers []string) {
		path, bodies := agentTurns(t, file)
		for _, body := range bodies {
			status, _, b := send(t, http.MethodPost, url+path, body)
			var o map[string]any
			if err := json.Unmarshal(b, &o); err != nil || status != 200 {
				t.Errorf("%s: status %d: %.300s", file, status, b)
				return answers
			}
			b, _ = json.Marshal(withoutIDs(o)) // it was decoded
			answers = append(answers, string(b))
			time.Sleep(pause)
		}
		return answers
	}
	alone := make([][]string, len(files))
	url := agentServer(t, testdata.Tiny, nil, engine.Options{NoPrefixCache: true})
	for i, file := range files {
		alone[i] = replay(url, file, 0)
	}
	url = agentServer(t, testdata.Tiny, nil, engine.Options{PinShare: .5})
	var wg sync.WaitGroup
	for i, file := range files {
		wg.Go(func() {
			got := replay(url, file, time.Duration(i)*7*time.Millisecond)
			if !slices.Equal(got, alone[i]) {
				t.Errorf("%s: together\n%q\nalone\n%q", file, got, alone[i])
			}
		})
	}
	wg.Wait()
}
