package ridge

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ridge/sample"
)

// checkpoint opens a tiny model of random weights with a generation_config.json.
func checkpoint(t *testing.T, generation string) *Model {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("internal", "tinymodel", "testdata", "llama"))); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "generation_config.json"), []byte(generation), 0o600); err != nil {
		t.Fatal(err)
	}
	m, err := OpenFile(dir, Options{Context: 64, Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

func ids(t *testing.T, m *Model, g Generation) (out []int32, end Finish) {
	t.Helper()
	g.MaxTokens = 12
	for tok, err := range m.GenerateTokens(t.Context(), []int32{5, 6, 7, 8}, g) {
		if err != nil {
			t.Fatal(err)
		}
		if tok.ID >= 0 {
			out = append(out, tok.ID)
		}
		end = tok.Finish
	}
	return out, end
}

// An answer ends with the tokens of generation_config.json.
func TestEndsOfGenerationConfig(t *testing.T) {
	free, _ := ids(t, checkpoint(t, `{}`), Generation{})
	last := free[3]
	at := slices.Index(free, last)
	got, end := ids(t, checkpoint(t, fmt.Sprintf(`{"eos_token_id": [127, %d]}`, last)), Generation{})
	if !slices.Equal(got, free[:at]) || end != FinishStop {
		t.Errorf("got %v, %v, want %v, stop", got, end, free[:at])
	}
}

// What is not said is what the model's files recommend.
func TestRecommended(t *testing.T) {
	plain := checkpoint(t, `{}`)
	greedy, _ := ids(t, plain, Generation{})
	p := sample.Params{Temperature: 2.5, TopP: 0.9, RepetitionPenalty: 1.25, PenaltyLastN: -1, Seed: 3}
	want, _ := ids(t, plain, Generation{Sampling: p})
	m := checkpoint(t, `{"do_sample": true, "temperature": 2.5, "top_p": 0.9, "repetition_penalty": 1.25}`)
	if r := m.Recommended(); r.String() != "temperature 2.5, top-p 0.9, repeat-penalty 1.25, repeat-last-n -1" || r.From != "generation_config.json" {
		t.Errorf("recommended: %v by %s", &r, r.From)
	}
	for _, c := range []struct {
		p    sample.Params
		want []int32
	}{
		{sample.Params{Seed: 3}, want},
		{p, want},
		{sample.Params{TopK: 1, RepetitionPenalty: 1}, greedy},
	} {
		if got, _ := ids(t, m, Generation{Sampling: c.p}); !slices.Equal(got, c.want) {
			t.Errorf("%+v: got %v, want %v", c.p, got, c.want)
		}
	}
	if got, _ := ids(t, plain, Generation{Sampling: sample.Params{Seed: 3}}); !slices.Equal(got, greedy) {
		t.Errorf("nothing recommended: got %v, want %v", got, greedy)
	}
}

// An embedding is made as the files say.
func TestRecommendedPooling(t *testing.T) {
	m := checkpoint(t, `{}`)
	mean, err := m.Embed(t.Context(), "ab cd", PoolMean)
	if err != nil {
		t.Fatal(err)
	}
	if own, err := m.Embed(t.Context(), "ab cd", PoolOwn); err != nil || !slices.Equal(own, mean) {
		t.Errorf("nothing said: %v", err)
	}
	pool := filepath.Join(m.Path, "1_Pooling")
	for mode, want := range map[string]string{"lasttoken": "", "weightedmean": "ridge: embed: pooling: expected PoolMean, PoolLast or PoolCLS: the model's own, \"weightedmean\""} {
		if err := os.MkdirAll(pool, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(pool, "config.json"), []byte(`{"pooling_mode_`+mode+`": true}`), 0o600); err != nil {
			t.Fatal(err)
		}
		m, err := OpenFile(m.Path, Options{Context: 64, Workers: 1})
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		own, err := m.Embed(t.Context(), "ab cd", PoolOwn)
		if want != "" {
			if err == nil || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("%s: error %v, want %s", mode, err, want)
			}
			continue
		}
		if last, _ := m.Embed(t.Context(), "ab cd", PoolLast); err != nil || !slices.Equal(own, last) {
			t.Errorf("%s: not as the files say: %v", mode, err)
		}
	}
}
