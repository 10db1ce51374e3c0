package spec

import (
	"math"
	"slices"
	"sort"
	"testing"

	"ridge/internal/testdata"
	"ridge/kvcache"
	"ridge/model"
	"ridge/text/tokenizer"
	"ridge/weights/tensor"
)

// oracle says what a model that drafts holds likely behind pieces that follow a text.
type oracle struct {
	s     *Small
	kv    *kvcache.Seq
	text  []int32
	known map[string][]branch
}

// at moves on to a text that begins as the one before.
func (o *oracle) at(text []int32) {
	o.s.m.Pool().Truncate(o.kv, len(o.text))
	o.text, o.known = text, map[string][]branch{}
}

// behind returns the likeliest tokens behind a piece, and how likely they are.
func (o *oracle) behind(t *testing.T, piece []int32) []branch {
	key := string(asRunes(piece))
	if got, ok := o.known[key]; ok {
		return got
	}
	pool := o.s.m.Pool()
	pool.Truncate(o.kv, len(o.text)-1)
	rest := slices.Concat(o.text[o.kv.Len():], piece)
	if err := o.s.m.Forward(&model.Step{Runs: []model.Run{{Seq: o.kv, Tokens: rest, Outputs: 1}}}); err != nil {
		t.Fatal(err)
	}
	var b branches
	b.expand(o.s.m.Logits(0), -1, 1, 8)
	o.known[key] = slices.Clone(b.next)
	return b.next
}

func asRunes(piece []int32) (out []rune) {
	for _, id := range piece {
		out = append(out, rune(id)+0x10000)
	}
	return out
}

// node is a node of a tree: the tokens up to it, and what it is chosen by.
type node struct {
	piece []int32
	value float64
}

// bestTree returns the n nodes with the largest values, where value gives that of a node
// from its parent's, its place behind it and its probability there.
func (o *oracle) bestTree(t *testing.T, n int, value func(parent float64, rank int, p float64) float64) (tree [][]int32) {
	rim := []node{{value: 1}}
	for len(tree) <= n && len(rim) > 0 {
		sort.SliceStable(rim, func(a, b int) bool { return rim[a].value > rim[b].value })
		top := rim[0]
		rim = rim[1:]
		tree = append(tree, top.piece)
		for rank, next := range o.behind(t, top.piece) {
			rim = append(rim, node{piece: slices.Concat(top.piece, []int32{next.token}), value: value(top.value, rank, next.p)})
		}
	}
	return tree[1:] // but the text itself
}

// accepted returns how many of the tokens that came a tree has.
func accepted(tree [][]int32, came []int32) (n int) {
	for _, piece := range tree {
		if len(piece) <= len(came) && slices.Equal(piece, came[:len(piece)]) {
			n = max(n, len(piece))
		}
	}
	return n
}

// On answers of SmolLM2, trees of the nodes that a model which drafts holds likeliest
// have more of the tokens that come than trees of the same number of nodes and one shape
// for all, though that shape is the best one for these very answers.
func TestDynamicTreesBeatStaticOnes(t *testing.T) {
	if testing.Short() {
		t.Skip("skipped: short")
	}
	large, err := model.Open(testdata.Model(t, "smollm2"), model.Options{KV: tensor.F16, Context: 512})
	if err != nil {
		t.Fatal(err)
	}
	defer large.Close()
	const answer = 40
	var texts [][]int32
	prompts := []string{"What is the capital of France, and what is it known for?", "Write a short story about a fox.", "Explain how to make tea."}
	for _, p := range prompts {
		text := large.Tokenizer().Encode(nil, "<|im_start|>user\n"+p+"<|im_end|>\n<|im_start|>assistant\n", tokenizer.EncodeOptions{ParseSpecial: true})
		texts = append(texts, slices.Concat(text, greedy(t, &Small{m: large}, text, answer)))
	}
	o := &oracle{s: openSmall(t, 512)}
	o.kv = o.s.m.Pool().NewSeq()
	defer o.s.m.Pool().Free(o.kv)
	// How often the token at each place of what is likely comes.
	var shares [8]float64
	for _, text := range texts {
		o.text = nil
		for i := len(text) - answer; i < len(text); i++ {
			o.at(text[:i])
			for rank, next := range o.behind(t, nil) {
				if next.token == text[i] {
					shares[rank] += 1 / float64(len(texts)*answer)
				}
			}
		}
	}
	for _, n := range []int{16, 32} {
		var right, steps [2]int
		for kind, value := range []func(float64, int, float64) float64{
			func(parent float64, rank int, _ float64) float64 { return parent * shares[rank] },
			func(parent float64, _ int, p float64) float64 { return parent * p },
		} {
			for _, text := range texts {
				o.text = nil
				for i := len(text) - answer; i < len(text); steps[kind]++ {
					o.at(text[:i])
					got := accepted(o.bestTree(t, n, value), text[i:])
					right[kind] += got
					i += got + 1
				}
			}
		}
		perNode := func(kind int) float64 { return float64(right[kind]) / float64(steps[kind]*n) }
		t.Logf("%d nodes: one shape %.4f accepted tokens a node, %.3f tokens a step; the likeliest %.4f and %.3f", n,
			perNode(0), 1+float64(right[0])/float64(steps[0]), perNode(1), 1+float64(right[1])/float64(steps[1]))
		if math.IsNaN(perNode(1)) || perNode(1) <= perNode(0) {
			t.Errorf("%d nodes: the likeliest have %d of the tokens in %d steps, one shape %d in %d", n, right[1], steps[1], right[0], steps[0])
		}
	}
}
