package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ridge"
	"ridge/engine"
	"ridge/internal/testdata"
	"ridge/model"
	"ridge/sample"
	"ridge/server"
	serverrun "ridge/server/run"
	"ridge/text/chat"
)

// templates are the model's own, and one that refuses system messages.
var templates = map[string]string{
	"own":            "",
	"no system role": `{% for m in messages %}{% if m.role not in ['user', 'assistant'] %}{{ raise_exception('only user and assistant') }}{% endif %}<|im_start|>{{ m.role }}` + "\n" + `{{ m.content }}<|im_end|>` + "\n" + `{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant` + "\n" + `{% endif %}`,
}

// A request gives the same tokens and bytes through every door: ridge run, the
// Go API and the server, also with a template that has no system role.
func TestSameThroughEveryDoor(t *testing.T) {
	const system, prompt = "You are a pirate named Bob.", "Tell me a story about a dog."
	msgs := []chat.Message{{Role: "system", Content: system}, {Role: "user", Content: prompt}}
	for name, template := range templates {
		t.Run(name, func(t *testing.T) {
			m, err := ridge.OpenFile(testdata.Tiny, ridge.Options{Template: template})
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close()
			ids, err := m.ChatTokens(chat.Input{Messages: msgs, AddGenerationPrompt: true})
			if err != nil {
				t.Fatal(err)
			}
			if text := m.Tokenizer().DecodeSpecial(ids); !strings.Contains(text, system) {
				t.Errorf("the system message is lost: %q", text)
			}
			url := serveTiny(t, template)
			var tokens struct{ Tokens []int32 }
			post(t, url+"/tokenize", map[string]any{"messages": wire(msgs)}, &tokens)
			if !slices.Equal(tokens.Tokens, ids) {
				t.Errorf("prompt: the server has %v, the Go API %v", tokens.Tokens, ids)
			}
			for _, p := range []sample.Params{{}, {Temperature: 0.8, TopK: 40, Seed: 11}} {
				r, err := m.Reply(t.Context(), msgs, ridge.Generation{MaxTokens: 40, Sampling: p})
				if err != nil {
					t.Fatal(err)
				}
				want := r[0].Message.Content
				if got := served(t, url, msgs, p); got != want || want == "" {
					t.Errorf("%+v: the server says %q, the Go API %q", p, got, want)
				}
				args := []string{testdata.Tiny, prompt, "--system", system, "-n", "40"}
				if p.Temperature > 0 {
					args = append(args, "--temp", "0.8", "--top-k", "40", "--seed", "11")
				} else { // as the server is told
					args = append(args, "--temp", "0")
				}
				if template != "" {
					file := filepath.Join(t.TempDir(), "template.jinja")
					if err := os.WriteFile(file, []byte(template), 0o600); err != nil {
						t.Fatal(err)
					}
					args = append(args, "--template", file)
				}
				c := runCommand()
				c.SetIn(strings.NewReader(""))
				out, err := runCobra(t, c, args...)
				if got := strings.TrimSuffix(out, "\n"); err != nil || got != want {
					t.Errorf("%+v: run says %q, %v, the Go API %q", p, got, err, want)
				}
			}
		})
	}
}

// serveTiny starts a server of the model inside the program.
func serveTiny(t *testing.T, template string) (url string) {
	t.Helper()
	mo := model.DefaultOptions()
	mo.MaxContext = 1024
	mm, err := model.Open(testdata.Tiny, mo)
	if err != nil {
		t.Fatal(err)
	}
	e, err := engine.New(mm, engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	m, err := serverrun.NewModel(serverrun.ModelConfig{Name: "tiny", Path: testdata.Tiny, Engine: e, Template: template})
	if err != nil {
		t.Fatal(err)
	}
	s, err := server.New(server.Options{Models: []*serverrun.Model{m}, Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(s.Handler())
	t.Cleanup(func() {
		srv.Close()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return srv.URL
}

func wire(msgs []chat.Message) (out []map[string]string) {
	for _, m := range msgs {
		out = append(out, map[string]string{"role": m.Role, "content": m.Content})
	}
	return out
}

// served is the text of a chat completion.
func served(t *testing.T, url string, msgs []chat.Message, p sample.Params) string {
	t.Helper()
	var reply struct {
		Choices []struct{ Message struct{ Content string } }
	}
	post(t, url+"/v1/chat/completions", map[string]any{"messages": wire(msgs), "max_tokens": 40, "temperature": p.Temperature, "top_k": p.TopK, "seed": p.Seed}, &reply)
	if len(reply.Choices) != 1 {
		t.Fatalf("%+v", reply)
	}
	return reply.Choices[0].Message.Content
}

func post(t *testing.T, url string, body, to any) {
	t.Helper()
	b, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.Post(url, "application/json", bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	if b, err = io.ReadAll(r.Body); err == nil {
		err = json.Unmarshal(b, to)
	}
	if err != nil || r.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s: %s, %v", url, r.Status, b, err)
	}
}
