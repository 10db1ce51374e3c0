package server

import (
	"context"
	"log/slog"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"ridge/engine"
	"ridge/internal/testdata"
	"ridge/model"
	"ridge/server/run"
	"ridge/weights/tensor"
)

// answeredLine finds the line of the log of a request that a model has answered.
var answeredLine = regexp.MustCompile(`"status":200.*"prompt_tokens":([0-9]+).*"tokens":([0-9]+)`)

// enoughTokens is how much of an answer is waited for: a model of this size may go on for
// long.
const enoughTokens = 100

// With a small real model every program starts, and has its first request answered:
// what such a model does with tools is its own affair. How long the prompts are is in
// docs/agents.md.
func TestAgentProgramsReal(t *testing.T) {
	dir := programFolder(t)
	path := testdata.Model(t, "qwen")
	for i := range programs {
		p := &programs[i]
		t.Run(p.file, func(t *testing.T) {
			mm, err := model.Open(path, model.Options{Workers: 2, PageTokens: 32, Context: 32768, KVBytes: 1 << 30, KV: tensor.F16})
			if err != nil {
				t.Fatal(err)
			}
			e, err := engine.New(mm, engine.Options{})
			if err != nil {
				t.Fatal(err)
			}
			m, err := run.NewModel(run.ModelConfig{Path: path, Name: "qwen", Engine: e})
			if err != nil {
				t.Fatal(err)
			}
			var log syncBuffer
			l := newPlace(t, dir, p, Options{Models: []*run.Model{m}, Version: "test", Log: slog.New(slog.NewJSONHandler(&log, nil))})
			args := p.turn
			if p.real != nil {
				args = p.real
			}
			ctx, cancel := context.WithTimeout(t.Context(), 5*patience)
			defer cancel()
			cmd := l.command(t, ctx, p, args, "Say hello, and nothing else.")
			cmd.Stdout, cmd.Stderr = &log, &log
			begun := time.Now()
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			ended := make(chan struct{})
			go func() { _ = cmd.Wait(); close(ended) }()
			prompt, tokens := 0, 0
			for l.answered(p) == 0 && tokens < enoughTokens {
				for _, q := range e.Stats().Sequences {
					prompt, tokens = max(prompt, q.Prompt), max(tokens, q.Tokens)
				}
				select {
				case <-ended:
					if l.answered(p) == 0 {
						t.Fatalf("it has ended without an answer: %s", log.String())
					}
				case <-time.After(50 * time.Millisecond):
				}
			}
			for _, m := range answeredLine.FindAllStringSubmatch(log.String(), -1) {
				n, _ := strconv.Atoi(m[1]) // digits
				k, _ := strconv.Atoi(m[2])
				prompt, tokens = max(prompt, n), max(tokens, k)
			}
			if t.Logf("a prompt of %d tokens, answered with %d or more after %.0f s", prompt, tokens, time.Since(begun).Seconds()); tokens == 0 {
				t.Errorf("no token in the answer: %s", log.String())
			}
			// A second request may have come already, which is longer by an answer.
			if p.real == nil && (prompt < p.prompt*19/20-20 || prompt > p.prompt*21/20+300) {
				t.Errorf("the table says that the prompt has %d tokens", p.prompt)
			}
			_ = cmd.Process.Signal(os.Interrupt) // it may have ended
			select {
			case <-ended:
			case <-time.After(20 * time.Second):
				_ = cmd.Process.Kill()
				<-ended
			}
			if strings.Contains(log.String(), `"status":5`) {
				t.Errorf("the server failed: %s", log.String())
			}
		})
	}
}

// answered is how many requests of the conversation were answered.
func (l *place) answered(p *program) (n int) {
	for _, s := range l.all() {
		if !s.ended.IsZero() && p.sends(&s) {
			n++
		}
	}
	return n
}
