package roofline

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"ridge/kernel"
	"ridge/model"
	"ridge/weights/gguf"
	"ridge/weights/tensor"
)

// tinyFiles are the GGUF files of all tiny models.
func tinyFiles(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("../../internal/tinymodel/testdata/*/*.gguf")
	if err != nil || len(files) == 0 {
		t.Fatalf("no tiny models: %v", err)
	}
	var first []string
	for _, f := range files {
		if !strings.Contains(f, "-0000") || strings.Contains(f, "-00001-") {
			first = append(first, f)
		}
	}
	return first
}

// naive counts a step the long way: for every row, every matrix in the file,
// every key that the row sees.
// fused says whether the file has matrices that are packed in parts.
func naive(t *testing.T, path string, c model.Config, kv tensor.DType, st Step) (out Cost, fused bool) {
	t.Helper()
	f, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	head := "output"
	if _, ok := f.Tensor("output.weight"); !ok || c.Tied {
		head = "token_embd"
	}
	for _, m := range f.Tensors() {
		name := strings.TrimSuffix(m.Name, ".weight")
		isHead := name == head
		if len(m.Dims) < 2 || strings.Contains(name, "norm") || strings.HasSuffix(name, "shortconv.conv") || isStatePart(name) || strings.Contains(name, "embd") && !strings.Contains(name, "unembd") && !isHead || strings.HasSuffix(name, ".bias") || strings.HasSuffix(name, "_coef") || isTimeMixPart(name) {
			continue
		}
		rows := st.Rows()
		if isHead {
			rows = st.Outputs()
		}
		if rows == 0 {
			continue
		}
		mat, err := f.Mat(m.Name)
		if err != nil {
			t.Fatal(err)
		}
		fused = fused || strings.HasSuffix(name, "attn_qkv") || strings.HasSuffix(name, "ffn_up") && mat.Rows != c.FFN
		n, err := kernel.PackedBytes(tensor.Mat{Type: mat.Type, Rows: mat.Rows, Cols: mat.Cols})
		if err != nil {
			t.Fatal(err)
		}
		if x := c.Experts; strings.HasSuffix(name, "_exps") {
			// Any token chooses any expert as likely as any other.
			part := 1 - math.Pow(1-float64(x.TopK)/float64(x.Count), float64(rows))
			parts := x.Count
			if strings.HasSuffix(name, "gate_up_exps") {
				parts *= 2 // each half is read as a matrix of its own
			}
			for range parts {
				out.Weights += int64(part * float64(n/parts))
			}
			out.FloatOps += 2 * float64(rows*mat.Rows*mat.Cols/x.Count*x.TopK)
			fused = fused || strings.HasSuffix(name, "gate_up_exps") || mat.Rows/x.Count%16 != 0
			continue
		}
		out.Weights += int64(n)
		for range rows {
			switch mat.Type {
			case tensor.F32, tensor.F16, tensor.BF16:
				out.FloatOps += 2 * float64(mat.Rows*mat.Cols)
			default:
				out.IntOps += 2 * float64(mat.Rows*mat.Cols)
			}
		}
	}
	for _, g := range st {
		for layer := range c.Layers {
			if c.FFNAlone != nil && c.FFNAlone[layer] {
				continue
			}
			if c.Conv.Layers != nil && c.Conv.Layers[layer] {
				state := int64(4 * (c.Conv.Taps - 1) * c.Hidden)
				out.KVRead += state
				out.KVWrite += state
				continue
			}
			if x := &c.State; x.Layers != nil && x.Layers[layer] {
				state := int64(4 * stateSize(&c))
				if _, ok := f.Tensor("blk.0.time_mix_key.weight"); ok {
					state += int64(4 * 2 * c.Hidden) // the row before, of either mixing
				}
				out.KVRead += state
				out.KVWrite += state
				if !x.Beside {
					continue
				}
			}
			seen, dim := map[int]bool{}, c.HeadDim
			if c.Dims != nil {
				dim = c.Dims[layer]
			}
			for pos := g.Pos; pos < g.Pos+g.Rows; pos++ {
				for key := range pos + 1 {
					w := c.Window[layer]
					if c.Chunk != nil && c.Chunk[layer] > 0 { // at most so many
						w = c.Chunk[layer]
					}
					if w > 0 && key <= pos-w {
						continue
					}
					seen[key] = true
					out.AttnOps += 4 * float64(c.Heads*dim)
					if l := c.Latent; l.Rank > 0 {
						out.AttnOps += 2 * float64(c.Heads*(2*l.Rank+l.RopeDim-2*c.HeadDim))
					}
				}
			}
			perKey := int64(2 * c.KVHeads[layer] * dim * kv.BlockBytes())
			if l := c.Latent; l.Rank > 0 {
				perKey = int64((l.Rank + l.RopeDim) * kv.BlockBytes())
			}
			out.KVRead += perKey * int64(len(seen))
			if c.KeysFrom == nil || c.KeysFrom[layer] == layer {
				out.KVWrite += perKey * int64(g.Rows)
			}
		}
	}
	return out, fused
}

// isStatePart says whether a tensor is a small one of a recurrent layer.
func isStatePart(name string) bool {
	return strings.HasSuffix(name, ".ssm_a") || strings.HasSuffix(name, ".ssm_d") || strings.HasSuffix(name, ".ssm_conv1d")
}

// isTimeMixPart says whether a tensor of RWKV is a small one, or one of the first
// layer, which has no values before its own to mix with.
func isTimeMixPart(name string) bool {
	return strings.Contains(name, "_mix_lerp_") || strings.HasSuffix(name, "time_mix_first") || strings.HasPrefix(name, "blk.0.time_mix_v") && name != "blk.0.time_mix_value"
}

// stateSize counts the values of a state: the last rows of a convolution, and what
// is scanned, which lie in parts of whole blocks of 16 columns.
func stateSize(c *model.Config) int {
	x := &c.State
	parts, columns := max(x.Inner/256, 1), x.Inner
	if x.Heads > 0 {
		parts, columns = x.Heads, x.Inner+2*x.Groups*x.States
	}
	share := (columns + 16*parts - 1) / (16 * parts) * 16
	return parts*share*(x.Taps-1) + x.Inner*x.States
}

// What is multiplied as bfloat16 is counted apart, and comes to as much.
func TestCostOfBrain(t *testing.T) {
	st := Step{{Pos: 30, Rows: 20, Outputs: 2}}
	{
		s := shapeOf(t, 2, tensor.F32)
		plain := s.Cost(st)
		if s.Act = model.ActBF16x2; s.Cost(st).BrainOps != 3*plain.FloatOps {
			t.Errorf("sums of two: %+v, with float32 %+v", s.Cost(st), plain)
		}
	}
	for _, typ := range []tensor.DType{tensor.BF16, tensor.F16, tensor.Q8_0} {
		s := shapeOf(t, 2, typ)
		plain := s.Cost(st)
		s.Act = model.ActBF16
		products := s.Cost(st)
		s.KV = tensor.BF16
		both := s.Cost(st)
		moved := 0.0
		if typ == tensor.BF16 {
			moved = plain.FloatOps
		}
		if products.BrainOps != moved || products.FloatOps != plain.FloatOps-moved || products.BrainAttn != 0 || products.Ops() != plain.Ops() {
			t.Errorf("%v: matrices: %+v, with float32 %+v", typ, products, plain)
		}
		if both.BrainAttn != plain.AttnOps || both.AttnOps != 0 || both.Ops() != plain.Ops() {
			t.Errorf("%v: keys: %+v, with float32 %+v", typ, both, plain)
		}
	}
}

func TestCostAgainstNaiveCount(t *testing.T) {
	steps := []Step{
		{{Pos: 0, Rows: 1, Outputs: 1}},
		{{Pos: 5, Rows: 7}},
		{{Pos: 30, Rows: 20, Outputs: 2}},
		{{Seq: 0, Pos: 3, Rows: 1, Outputs: 1}, {Seq: 1, Pos: 40, Rows: 1, Outputs: 1}, {Seq: 2, Pos: 0, Rows: 18, Outputs: 1}},
	}
	for _, path := range tinyFiles(t) {
		for _, kv := range []tensor.DType{tensor.F16, tensor.F32} {
			s, err := Read(path, kv)
			if err != nil {
				t.Fatal(err)
			}
			s.Act = model.ActInt8
			for _, st := range steps {
				got := s.Cost(st)
				want, fused := naive(t, path, s.Outline.Config, kv, st)
				if fused {
					// The parts round up to whole groups.
					if got.Weights < want.Weights || got.Weights > want.Weights*3/2 {
						t.Errorf("%s %v: %d bytes of weights, the file has %d", path, st, got.Weights, want.Weights)
					}
					got.Weights = want.Weights
				}
				if math.Abs(got.FloatOps-want.FloatOps) < 1e-9*want.FloatOps {
					got.FloatOps = want.FloatOps // a part of the experts is no round number
				}
				if got != want {
					t.Errorf("%s %v %v:\ncounted %+v\nnaive   %+v", filepath.Base(path), kv, st, got, want)
				}
			}
		}
	}
}

func TestKeysSeen(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := Run{Pos: rapid.IntRange(0, 60).Draw(t, "pos"), Rows: rapid.IntRange(0, 60).Draw(t, "rows")}
		window := rapid.IntRange(0, 50).Draw(t, "window")
		want := 0
		for r := range g.Rows {
			n := g.Pos + r + 1
			if window > 0 {
				n = min(n, window)
			}
			want += n
		}
		if got := keysSeen(g, window); got != float64(want) {
			t.Fatalf("%+v, window %d: %v keys, want %d", g, window, got, want)
		}
	})
}

// The steps of a work compute every token of every sequence once, in order.
func TestSteps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := Work{
			Prompt: rapid.IntRange(0, 40).Draw(t, "prompt"), Gen: rapid.IntRange(0, 10).Draw(t, "gen"), Depth: rapid.IntRange(0, 9).Draw(t, "depth"),
			Seqs: rapid.IntRange(0, 5).Draw(t, "seqs"), Chunk: rapid.IntRange(0, 16).Draw(t, "chunk"),
		}
		next := map[int]int{}
		rows, outputs := 0, 0
		for st := range w.Steps() {
			if len(st) == 0 || st.Rows() > max(w.chunk(), w.seqs()) {
				t.Fatalf("%+v: a step of %d rows", w, st.Rows())
			}
			seen := map[int]bool{}
			for _, g := range st {
				if seen[g.Seq] || g.Rows < 1 || g.Outputs > g.Rows || g.Pos != w.Depth+next[g.Seq] {
					t.Fatalf("%+v: run %+v after %d tokens", w, g, next[g.Seq])
				}
				seen[g.Seq] = true
				next[g.Seq] += g.Rows
			}
			rows, outputs = rows+st.Rows(), outputs+st.Outputs()
		}
		wantOut := w.seqs() * w.Gen
		if w.Prompt > 0 {
			wantOut += w.seqs()
		}
		if rows != w.Tokens() || outputs != wantOut {
			t.Fatalf("%+v: %d rows and %d outputs, want %d and %d", w, rows, outputs, w.Tokens(), wantOut)
		}
		if w.Tokens() > 0 && (w.Context() != w.Depth+next[0] || w.Fill().Tokens() != w.Depth*w.seqs()) {
			t.Fatalf("%+v: context %d, fill %+v", w, w.Context(), w.Fill())
		}
	})
}

func TestWorkNames(t *testing.T) {
	for want, w := range map[string]Work{
		"pp512": {Prompt: 512}, "tg128": {Gen: 128, Seqs: 1}, "pp512+tg128": {Prompt: 512, Gen: 128},
		"tg64 @ d4096 x8": {Gen: 64, Depth: 4096, Seqs: 8}, "pp0": {},
	} {
		if got := w.String(); got != want {
			t.Errorf("%+v is called %q, want %q", w, got, want)
		}
	}
}

// What is planned for keys and values is what the pool takes.
func TestKVMemory(t *testing.T) {
	for _, path := range tinyFiles(t) {
		for _, kv := range []tensor.DType{tensor.F16, tensor.F32} {
			s, err := Read(path, kv)
			if err != nil {
				t.Fatal(err)
			}
			o := model.DefaultOptions()
			o.KV, o.KVBytes, o.Context = kv, s.KVMemory(100, 3), 60
			m, err := model.Open(path, o)
			if err != nil {
				t.Fatal(err)
			}
			if got, want := m.Pool().Available(), 3*m.Pool().PagesFor(nil, 100); got != want {
				t.Errorf("%s: room for %d pages, want %d", path, got, want)
			}
			m.Close()
		}
	}
}

func TestFit(t *testing.T) {
	s, err := Read("../../internal/tinymodel/testdata/llama/llama.gguf", tensor.F16)
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		u := Use{Context: rapid.IntRange(1, 300).Draw(t, "context"), Seqs: rapid.IntRange(1, 9).Draw(t, "seqs"), Chunk: rapid.IntRange(0, 64).Draw(t, "chunk")}
		bytes := rapid.Int64Range(0, 1<<22).Draw(t, "bytes")
		f := s.Fit(u, bytes)
		fits := func(context, seqs int) bool {
			return s.Memory(Use{Context: context, Seqs: seqs, Chunk: u.Chunk}).Total() <= bytes
		}
		if f.Fits != fits(u.Context, u.Seqs) || f.Fits && (f.Context < u.Context || f.Seqs < u.Seqs) {
			t.Fatalf("%+v in %d bytes: %+v", u, bytes, f)
		}
		if f.Context > 0 && !fits(f.Context, u.Seqs) || f.Context < max(u.Context, s.Outline.Config.Context) && fits(f.Context+1, u.Seqs) {
			t.Fatalf("%+v in %d bytes: context %d is not the longest", u, bytes, f.Context)
		}
		if f.Seqs > 0 && !fits(u.Context, f.Seqs) || fits(u.Context, f.Seqs+1) {
			t.Fatalf("%+v in %d bytes: %d sequences are not the most", u, bytes, f.Seqs)
		}
	})
}

func TestReadErrors(t *testing.T) {
	bad := filepath.Join(t.TempDir(), "x.gguf")
	if err := os.WriteFile(bad, []byte("GGUF"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{bad, "nothing.gguf"} {
		if _, err := Read(path, tensor.F16); err == nil {
			t.Errorf("%s: no error", path)
		}
	}
	if _, err := Read(tinyFiles(t)[0], tensor.Q4_0); err == nil || !strings.Contains(err.Error(), "expected F16, F32, BF16 or Q8_0") {
		t.Errorf("keys as Q4_0: %v", err)
	}
}

// Every model has a report, those without attention in the first layer too.
func TestReportOfEveryModel(t *testing.T) {
	for _, path := range tinyFiles(t) {
		s, err := Read(path, tensor.F16)
		if err != nil {
			t.Fatal(err)
		}
		r := NewReport(s, sample(), Use{Context: 64}, 1, 1<<30)
		if m := r.Memory; m.Weights <= 0 || m.KV <= 0 || m.Activations <= 0 || m.Vocabulary <= 0 {
			t.Errorf("%s: %+v", path, m)
		}
		for _, p := range r.Predictions {
			if !(p.Speed > 0) {
				t.Errorf("%s: %+v", path, p)
			}
		}
	}
}
