package engine

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"ridge/model"
	"ridge/sample"
	"ridge/sched"
)

// pooled computes an embedding with nothing but the model.
func pooled(t testing.TB, m *model.Model, tokens []int32, p Pooling) []float32 {
	t.Helper()
	seq := m.Pool().NewSeq()
	defer m.Pool().Free(seq)
	if err := m.Forward(&model.Step{Runs: []model.Run{{Seq: seq, Tokens: tokens, Outputs: len(tokens)}}, NoLogits: true}); err != nil {
		t.Fatal(err)
	}
	sum := make([]float64, m.Config().Hidden)
	for i := range tokens {
		if p == PoolingLast && i < len(tokens)-1 {
			continue
		}
		for d, v := range m.Hidden(i) {
			sum[d] += float64(v)
		}
	}
	return model.Unit(sum)
}

// Embeddings and scores of prompts are the same however the prompts are cut,
// beside what, and whatever the prefix tree holds.
func TestPrompts(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 8))
	for _, name := range []string{"llama", "gemma3"} {
		m := openTiny(t, name, 40)
		prefix := randomTokens(r, 40, 128)
		var reqs []Request
		for i := range 30 {
			q := Request{Tokens: append(slices.Clone(prefix[:r.IntN(40)]), randomTokens(r, 1+r.IntN(40), 128)...)}
			switch i % 5 {
			case 0:
				q.Embed = PoolingMean
			case 1:
				q.Embed = PoolingLast
			case 2:
				q.PromptLogProbs, q.MaxTokens = 1+r.IntN(5), -1
			case 3:
				q.PromptLogProbs, q.MaxTokens = 1, 5
			case 4:
				q.MaxTokens = 10
			}
			reqs = append(reqs, q)
		}
		embeddings := make([][]float32, len(reqs))
		probs := make([][]sample.Result, len(reqs))
		for i, q := range reqs {
			if q.Embed != NoPooling {
				embeddings[i] = pooled(t, m, q.Tokens, q.Embed)
			}
			if q.PromptLogProbs > 0 {
				probs[i] = scores(t, m, q.Tokens, q.PromptLogProbs)
			}
		}
		for _, cfg := range []sched.Config{
			{Split: true, MaxTokens: 512},
			{Split: true, MaxTokens: 13, MaxSeqs: 13},
			{Order: sched.ByRank, Split: true, MaxTokens: 64, Policy: sched.MLFQ(1, 0, nil, 64), Preemptive: true},
		} {
			e := start(t, m, Options{Sched: &cfg})
			for round := range 2 {
				// The second time logits are computed in pieces.
				if err := e.call(t.Context(), func() { e.logits = maxLogits * (1 - round) }); err != nil {
					t.Fatal(err)
				}
				var streams []*Stream
				for _, q := range reqs {
					streams = append(streams, submit(t, e, q))
				}
				for i, s := range streams {
					got, info := read(t, s, 1)
					checkPrompt(t, &reqs[i], &got[0], info, embeddings[i], probs[i])
				}
			}
			if err := e.Check(t.Context()); err != nil {
				t.Error(err)
			}
			if err := e.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

func checkPrompt(t *testing.T, q *Request, got *answer, info *PromptInfo, embedding []float32, probs []sample.Result) {
	t.Helper()
	want := q.MaxTokens
	if q.Embed != NoPooling || want < 0 {
		want = 0
	}
	if len(got.tokens) != want {
		t.Errorf("%d tokens, want %d: %+v", len(got.tokens), want, got.last)
	}
	if !slices.Equal(got.last.Embedding, embedding) {
		t.Errorf("embedding %v, want %v", got.last.Embedding, embedding)
	}
	if embedding != nil {
		sum := 0.0
		for _, v := range embedding {
			sum += float64(v * v)
		}
		if math.Abs(sum-1) > 1e-5 {
			t.Errorf("length %v", sum)
		}
	}
	if !slices.EqualFunc(info.LogProbs, probs, func(a, b sample.Result) bool {
		return a.Token == b.Token && a.LogProb == b.LogProb && slices.Equal(a.Top, b.Top)
	}) {
		t.Errorf("log-probabilities: got %v, want %v", info.LogProbs, probs)
	}
	if (q.Embed == PoolingMean || q.PromptLogProbs > 0) && info.Cached != 0 {
		t.Errorf("%d tokens were not computed though each gives something", info.Cached)
	}
}
