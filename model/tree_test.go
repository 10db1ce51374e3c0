package model

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ridge/internal/testdata"
	"ridge/kvcache"
	"ridge/weights/tensor"
)

// randomTree returns the parents of n nodes: a chain with branches, or anything.
func randomTree(r *rand.Rand, n int) []int32 {
	tree := make([]int32, n)
	for i := range tree {
		if tree[i] = int32(i) - 1; r.IntN(3) == 0 {
			tree[i] = int32(r.IntN(i+1)) - 1
		}
	}
	return tree
}

// branch returns the nodes from the root to one, itself included.
func branch(tree []int32, node int) (path []int) {
	for ; node >= 0; node = int(tree[node]) {
		path = append(path, node)
	}
	slices.Reverse(path)
	return path
}

// The logits of each node of a tree have the bits of those behind the same tokens in a
// text, whatever the tree, the page size, the number of threads and what else is in the
// step; also where the tree grows from step to step. A branch that is moved to its place
// goes on as the text would.
func TestTreesOneAnswer(t *testing.T) {
	names := []string{"llama", "gemma3", "falcon-7b", "mpt", "phi3-swa", "gpt2", "ministral3", "gemma4", "gemma3n", "llama4", "deepseek3", "gpt-oss"}
	for i, name := range names {
		t.Run(name, func(t *testing.T) {
			g := readGolden(t, filepath.Join(tinyModels, name))
			treesOf(t, g.dir, uint64(i), 3, g.Prompt, Options{KV: tensor.F16, Context: g.Context})
			treesOf(t, g.dir, uint64(i), 1, g.Prompt, Options{KV: tensor.Q8_0, Context: g.Context})
			treesOf(t, g.dir, uint64(i), 1, g.Prompt, Options{KV: tensor.BF16, Context: g.Context})
		})
	}
}

func TestTreesOneAnswerOfTrainedModel(t *testing.T) {
	for _, kv := range []tensor.DType{tensor.F16, tensor.Q8_0, tensor.BF16, tensor.F32} {
		treesOf(t, testdata.Tiny, 3, 1, randomPrompt(300), Options{KV: kv, Context: 512})
	}
}

func TestTreesOneAnswerOfRealModel(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and the tiny models cover it")
	}
	treesOf(t, testdata.Model(t, "smollm2"), 5, 3, randomPrompt(600), Options{KV: tensor.F16, Context: 1024})
}

// treesOf computes some trees behind pieces of a text.
func treesOf(t *testing.T, path string, seed uint64, rounds int, text []int32, o Options) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 23))
	for round := range rounds {
		o.Workers, o.PageTokens, o.KVBytes = 1+round%3, 16<<(round%4), 64<<20
		m := openTiny(t, path, o.Context, o)
		if err := oneTree(m, text[:1+r.IntN(len(text)-1)], r); err != nil {
			t.Errorf("%v, %d threads, pages of %d: %v", o.KV, o.Workers, o.PageTokens, err)
		}
	}
}

func oneTree(m *Model, text []int32, r *rand.Rand) error {
	pool, vocab := m.Pool(), int32(m.Config().Vocab)
	tree := randomTree(r, 1+r.IntN(min(24, m.Context()-len(text)-2)))
	tokens := make([]int32, len(tree))
	for i := range tokens {
		tokens[i] = r.Int32N(vocab)
	}
	base := pool.NewSeq()
	defer pool.Free(base)
	known := r.IntN(len(text))
	if known > 0 {
		if err := m.Forward(&Step{Runs: []Run{{Seq: base, Tokens: text[:known]}}}); err != nil {
			return err
		}
	}
	// The tree, all of it at once or the end of it in a second step, beside another text
	// and another tree.
	s, other, third := pool.Fork(base), pool.NewSeq(), pool.Fork(base)
	defer pool.Free(s)
	defer pool.Free(other)
	defer pool.Free(third)
	cut := len(tree)
	if r.IntN(2) == 0 {
		cut = r.IntN(len(tree) + 1)
	}
	length := len(text) + len(tree)
	got := make([][]float32, 0, len(tree)+1)
	take := func(first, n int) {
		for i := range n {
			got = append(got, slices.Clone(m.Logits(first+i)))
		}
	}
	runs := []Run{
		{Seq: other, Tokens: randomPrompt(5)[:1+r.IntN(5)]},
		{Seq: s, Tokens: slices.Concat(text[known:], tokens[:cut]), Tree: tree[:cut], Outputs: 1 + cut, Length: length},
		{Seq: third, Tokens: slices.Concat(text[known:], tokens[:min(3, cut)]), Tree: slices.Repeat([]int32{-1}, min(3, cut)), Length: length},
	}
	for i := range runs[0].Tokens {
		runs[0].Tokens[i] %= vocab
	}
	if err := m.Forward(&Step{Runs: runs}); err != nil {
		return err
	}
	take(0, 1+cut)
	if cut < len(tree) {
		if err := m.Forward(&Step{Runs: []Run{{Seq: s, Tokens: tokens[cut:], Tree: tree, Outputs: len(tree) - cut, Length: length}}}); err != nil {
			return err
		}
		take(0, len(tree)-cut)
	}
	last := -1
	alone := func(node int, more ...int32) (q *kvcache.Seq, err error) {
		q = pool.Fork(base)
		all := slices.Clone(text[known:])
		for _, k := range branch(tree, node) {
			all = append(all, tokens[k])
		}
		return q, m.Forward(&Step{Runs: []Run{{Seq: q, Tokens: append(all, more...), Outputs: 1, Length: length}}})
	}
	for node := -1; node < len(tree); node++ {
		q, err := alone(node)
		if err != nil {
			return err
		}
		if want := m.Logits(0); !equalBits(got[node+1], want) {
			d, _ := maxDiff(got[node+1], want)
			pool.Free(q)
			return fmt.Errorf("%d tokens and %v, cut at %d: node %d differs by %v", len(text), tree, cut, node, d)
		}
		pool.Free(q)
		if last < 0 || r.IntN(3) == 0 {
			last = node
		}
	}
	// A branch is right.
	path := branch(tree, last)
	for depth, node := range path {
		if node != depth {
			pool.Move(s, len(text)+depth, len(text)+node)
		}
	}
	pool.Truncate(s, len(text)+len(path))
	if err := m.Forward(&Step{Runs: []Run{{Seq: s, Tokens: []int32{7}, Outputs: 1, Length: length}}}); err != nil {
		return err
	}
	moved := slices.Clone(m.Logits(0))
	q, err := alone(last, 7)
	defer pool.Free(q)
	if err != nil {
		return err
	}
	if !equalBits(moved, m.Logits(0)) {
		return fmt.Errorf("%d tokens and %v: behind node %d, moved, logits differ", len(text), tree, last)
	}
	return pool.Check(base, s, other, third, q)
}

// Trees that are none, and branches that a layer cannot follow, are refused.
func TestTreesRefused(t *testing.T) {
	for _, c := range []struct {
		name   string
		tree   []int32
		tokens int
		want   string
	}{
		{"llama", []int32{-1, 1}, 3, "node 1: parent: expected -1 to 0, found 1"},
		{"llama", []int32{-2}, 3, "node 0: parent: expected -1 to -1, found -2"},
		{"llama", []int32{-1, 0, 1}, 3, "expected a token before 3 nodes, found 3 tokens"},
		{"mamba", []int32{-1, -1}, 3, "expected a chain, as layers with states go from a token to the next, found branches"},
		{"mamba", []int32{-1, 0}, 3, ""},
	} {
		g := readGolden(t, filepath.Join(tinyModels, c.name))
		m := openTiny(t, g.dir, g.Context, Options{KV: tensor.F16})
		s := m.Pool().NewSeq()
		err := m.Forward(&Step{Runs: []Run{{Seq: s, Tokens: g.Prompt[:c.tokens], Tree: c.tree, Outputs: 1}}})
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.HasSuffix(err.Error(), c.want)) {
			t.Errorf("%s %v: %v, want %q", c.name, c.tree, err, c.want)
		}
		m.Pool().Free(s)
	}
}
