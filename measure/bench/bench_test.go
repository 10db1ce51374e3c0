package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"ridge/internal/cpu"
	"ridge/measure/roofline"
	"ridge/model"
	"ridge/weights/gguf"
	"ridge/weights/tensor"
)

// TestMain plays the peer when the environment asks for it: it prints one
// record of what the arguments ask for.
func TestMain(m *testing.M) {
	if speed := os.Getenv("RIDGE_TEST_PEER"); speed != "" {
		var pp, tg, depth int
		if _, err := fmt.Sscanf(os.Args[len(os.Args)-1], "%d/%d/%d", &pp, &tg, &depth); err != nil || speed == "fail" {
			fmt.Fprintln(os.Stderr, "first line\nno model today")
			os.Exit(3)
		}
		fmt.Printf("[\n{\"build_commit\": \"abc\", \"build_number\": 7, \"n_prompt\": %d, \"n_gen\": %d, \"n_depth\": %d, \"avg_ts\": %s}\n]\n", pp, tg, depth, speed)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

const tiny = "../../internal/tinymodel/testdata/llama/llama.gguf"

func TestRun(t *testing.T) {
	works := []roofline.Work{
		{Prompt: 20, Chunk: 8}, {Gen: 6}, {Prompt: 8, Gen: 4}, {Gen: 4, Depth: 20}, {Gen: 4, Depth: 3, Seqs: 3}, {Prompt: 7, Seqs: 3, Chunk: 4}, {Prompt: 1},
	}
	var got []string
	var steps []string
	o := Options{
		Models: []string{tiny}, Works: works, Threads: []int{1, 2}, KV: []tensor.DType{tensor.F16, tensor.F32}, Act: []model.Act{model.ActInt16}, Repeat: 3, Probe: 100 * time.Microsecond,
		Progress: func(s string) { steps = append(steps, s) },
	}
	err := Run(context.Background(), o, func(r *Result) error {
		got = append(got, fmt.Sprint(r.Threads, r.KV, r.Work))
		if r.Act != model.ActInt16 {
			t.Errorf("%s: activations as %v", r.Work, r.Act)
		}
		if len(r.Seconds) != 3 || r.Speed.Median <= 0 || r.Speed.Min > r.Speed.Median || r.Speed.Max < r.Speed.Median {
			t.Errorf("%s: seconds %v, speed %+v", r.Work, r.Seconds, r.Speed)
		}
		if runtime.GOOS == "linux" && !(r.Share > 0 && r.Share <= 1) {
			t.Errorf("%s: share %v", r.Work, r.Share)
		}
		if r.ReadRate <= 0 || r.FloatRate <= 0 || r.Bound <= 0 || r.Limit == "" || r.Bytes() <= 0 || r.Ops() <= 0 {
			t.Errorf("%s: rates %v, %v, bound %v of %q", r.Work, r.ReadRate, r.FloatRate, r.Bound, r.Limit)
		}
		if wantGen := 3 * r.Work.Gen; len(r.stepSeconds) != wantGen || r.Work.Gen > 0 && !(r.StepMin > 0 && r.StepP50 >= r.StepMin && r.StepP99 >= r.StepP50) {
			t.Errorf("%s: %d steps, %v %v %v", r.Work, len(r.stepSeconds), r.StepMin, r.StepP50, r.StepP99)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 4*len(works) || got[0] != "1 F16 pp20" || got[len(got)-1] != "2 F32 pp1" || len(steps) != 4*(1+len(works)) {
		t.Errorf("results %q, progress %q", got, steps)
	}
}

// An encoder's text of more tokens than a page has fits into the memory that is taken
// for it: its keys are float32 whatever is asked for.
func TestRunEncoder(t *testing.T) {
	o := Options{
		Models: []string{"../../internal/tinymodel/encoders/distilbert"}, Works: []roofline.Work{{Prompt: 80}}, Threads: []int{1},
		Repeat: 1, Probe: 100 * time.Microsecond,
	}
	n := 0
	err := Run(context.Background(), o, func(r *Result) error {
		if n++; r.KV != tensor.F32 || r.Speed.Median <= 0 {
			t.Errorf("keys of %v, speed %+v", r.KV, r.Speed)
		}
		return nil
	})
	if err != nil || n != 1 {
		t.Fatalf("%d results: %v", n, err)
	}
}

func TestRunPeer(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p, err := ParsePeer("other=" + exe + " {model} {pp}/{tg}/{depth}")
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Models: []string{tiny}, Works: []roofline.Work{{Gen: 2, Depth: 4}}, Threads: []int{1}, Repeat: 1, Peers: []*Peer{p}}
	t.Setenv("RIDGE_TEST_PEER", "12.5")
	err = Run(context.Background(), o, func(r *Result) error {
		if len(r.Seconds) != minPairs || len(r.Peers) != 1 {
			t.Fatalf("%d measurements, peers %+v", len(r.Seconds), r.Peers)
		}
		q := r.Peers[0]
		if len(q.Samples) != minPairs || q.Speed.Median != 12.5 || q.Version != "abc (7)" || q.Name != "other" {
			t.Errorf("peer %+v", q)
		}
		if want := r.Speed.Median / 12.5; q.Ratio != want || q.RatioMin > want || q.RatioMax < want {
			t.Errorf("ratio %v (%v to %v), want %v", q.Ratio, q.RatioMin, q.RatioMax, want)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	// A peer that cannot do a work is left out of it, and that is said.
	one, err := ParsePeer("llama-bench")
	if err != nil {
		t.Fatal(err)
	}
	both := o
	both.Peers, both.Works = []*Peer{one, p}, []roofline.Work{{Gen: 2, Seqs: 2}}
	err = Run(context.Background(), both, func(r *Result) error {
		if len(r.Peers) != 1 || r.Peers[0].Name != "other" || len(r.LeftOut) != 1 || !strings.HasPrefix(r.LeftOut[0], "llama-bench is left out of tg2 x2: ") {
			t.Errorf("peers %v, left out %q", r.Peers, r.LeftOut)
		}
		return nil
	})
	if err == nil || !strings.Contains(err.Error(), "expected a record of tg2 x2") {
		t.Errorf("a peer that prints something else: %v", err)
	}
	t.Setenv("RIDGE_TEST_PEER", "fail")
	err = Run(context.Background(), o, func(r *Result) error { return nil })
	if err == nil || !strings.Contains(err.Error(), "exit status 3") || !strings.HasSuffix(err.Error(), "no model today") {
		t.Errorf("a peer that fails: %v", err)
	}
}

func TestRunErrors(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	stop := errors.New("stop")
	gen := []roofline.Work{{Gen: 1}}
	for want, c := range map[string]struct {
		ctx context.Context
		o   Options
	}{
		"expected at least one thing":     {context.Background(), Options{Models: []string{tiny}}},
		"expected at least one token":     {context.Background(), Options{Models: []string{tiny}, Works: []roofline.Work{{}}}},
		"no such file":                    {context.Background(), Options{Models: []string{"no.gguf"}, Works: gen}},
		"expected F16, F32, BF16 or Q8_0": {context.Background(), Options{Models: []string{tiny}, Works: gen, KV: []tensor.DType{tensor.Q4_0}}},
		context.Canceled.Error():          {ctx, Options{Models: []string{tiny}, Works: gen}},
		stop.Error():                      {context.Background(), Options{Models: []string{tiny}, Works: gen}},
		"expected at least one token to":  {context.Background(), Options{Models: []string{tiny}, Works: []roofline.Work{{Gen: 1, Seqs: -1}}}},
	} {
		err := Run(c.ctx, c.o, func(r *Result) error { return stop })
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

func TestSynthetic(t *testing.T) {
	dir := t.TempDir()
	for _, spec := range []string{"tiny", "tiny:Q4_0", "tiny:Q4_K_M", "tiny:q5_k_m", "tiny:F16", "tiny:Q6_K", "tiny:MXFP4", "tiny:TQ2_0"} {
		path := filepath.Join(dir, strings.ReplaceAll(spec, ":", "-")+".gguf")
		if err := Synthetic(path, spec, 7); err != nil {
			t.Fatalf("%s: %v", spec, err)
		}
		m, err := model.Open(path, model.DefaultOptions())
		if err != nil {
			t.Fatalf("%s: %v", spec, err)
		}
		if m.Tokenizer() == nil || m.Tokenizer().VocabSize() != 512 || m.Parameters() != 512*64+64+2*(2*64+64*(64+2*32+64+3*160)) {
			t.Errorf("%s: %d parameters, tokenizer %v", spec, m.Parameters(), m.Tokenizer())
		}
		seq := m.Pool().NewSeq()
		if err := m.Forward(&model.Step{Runs: []model.Run{{Seq: seq, Tokens: []int32{1, 2, 3}, Outputs: 1}}}); err != nil {
			t.Fatal(err)
		}
		low, high := m.Logits(0)[0], m.Logits(0)[0]
		for _, v := range m.Logits(0) {
			low, high = min(low, v), max(high, v)
		}
		if !(high > low) || !(high < 1e3) || !(low > -1e3) {
			t.Errorf("%s: logits from %v to %v", spec, low, high)
		}
		m.Close()
	}
	if s, err := roofline.Read(filepath.Join(dir, "tiny-Q4_K_M.gguf"), tensor.F16); err != nil || s.Name() != "llama 0.1M Q4_K_M" {
		t.Errorf("%v", err)
	}
	// The same seed gives the same file, another one another.
	same := map[uint64]string{}
	for i, seed := range []uint64{7, 7, 8} {
		b, err := synthesize("tiny:Q4_0", seed)
		if err != nil {
			t.Fatal(err)
		}
		var buf bytes.Buffer
		if _, err := b.WriteTo(&buf); err != nil {
			t.Fatal(err)
		}
		if old, ok := same[seed]; ok && old != buf.String() {
			t.Error("the same seed gives different files")
		}
		same[seed] = buf.String()
		if i == 2 && same[7] == same[8] {
			t.Error("different seeds give the same file")
		}
	}
	for spec, want := range map[string]string{"huge": `expected one of [0.5b`, "tiny:Q9": "quantization", "tiny:IQ1_S": "quantization", "": `found ""`} {
		if err := Synthetic(filepath.Join(dir, "x.gguf"), spec, 1); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", spec, err, want)
		}
	}
}

// A shape with experts is a model of which a token reads its share.
func TestSyntheticExperts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "moe.gguf")
	if err := Synthetic(path, "tinymoe:Q4_0", 7); err != nil {
		t.Fatal(err)
	}
	m, err := model.Open(path, model.Options{KV: tensor.F16, Workers: 1, Context: 64})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	seq := m.Pool().NewSeq()
	if err := m.Forward(&model.Step{Runs: []model.Run{{Seq: seq, Tokens: []int32{1, 2, 3}, Outputs: 1}}}); err != nil {
		t.Fatal(err)
	}
	loads := m.ExpertLoads()
	if len(loads) != 2 || loads[0].Experts != 8 || loads[0].Chosen != 2*3 {
		t.Errorf("loads %+v", loads)
	}
}

// A mixture stores matrices as llama.cpp's quantizer does, with wider types
// where a row is no whole number of blocks.
func TestSyntheticMixture(t *testing.T) {
	count := map[string]int{}
	b, err := synthesize("smol:Q4_K_M", 1)
	if err != nil {
		t.Fatal(err)
	}
	var buf bytes.Buffer
	if _, err := b.WriteTo(&buf); err != nil {
		t.Fatal(err)
	}
	f, err := gguf.OpenBytes("smol", buf.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	bytes := uint64(0)
	for _, x := range f.Tensors() {
		count[x.Type.String()]++
		bytes += x.Size
	}
	want := map[string]int{"F32": 61, "Q8_0": 1 + 14, "Q5_0": 30*5 + 16, "Q4_K": 16, "Q6_K": 14}
	for name, n := range want {
		if count[name] != n {
			t.Errorf("%s: %d tensors, want %d", name, count[name], n)
		}
	}
	if bytes < 103e6 || bytes > 106e6 {
		t.Errorf("%d bytes of tensors", bytes)
	}
}

func TestKernels(t *testing.T) {
	o := KernelOptions{
		Types: []tensor.DType{tensor.Q8_0, tensor.F32}, Shapes: [][2]int{{40, 96}}, Rows: []int{1, 5}, Tiers: []cpu.Tier{cpu.Generic, cpu.Best()},
		Threads: 2, Time: time.Millisecond, Spread: 1 << 20,
	}
	var all []*KernelResult
	note := func(r *KernelResult) error { all = append(all, r); return nil }
	if err := Kernels(context.Background(), o, note); err != nil {
		t.Fatal(err)
	}
	if len(all) != 8 {
		t.Fatalf("%d results, want 8", len(all))
	}
	for _, r := range all {
		if r.Seconds <= 0 || r.Bytes <= 0 || r.Ops <= 0 || r.Bound <= 0 || r.Limit == "" || r.OutRows != 40 || r.Cols != 96 || r.Threads != 2 {
			t.Errorf("%+v", r)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := Kernels(ctx, o, note); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	for want, bad := range map[string]func(*KernelOptions){
		"rows: expected":  func(o *KernelOptions) { o.Rows = []int{0} },
		"multiple of the": func(o *KernelOptions) { o.Types = []tensor.DType{tensor.Q4_K} },
		"encoder":         func(o *KernelOptions) { o.Types, o.Shapes = []tensor.DType{tensor.IQ1_S}, [][2]int{{16, 256}} },
		"tier":            func(o *KernelOptions) { o.Tiers = []cpu.Tier{cpu.NEON, cpu.AVX2} },
	} {
		o := o
		bad(&o)
		if err := Kernels(context.Background(), o, note); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}
