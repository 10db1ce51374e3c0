package bench

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ridge/internal/golden"
	"ridge/measure/roofline"
	"ridge/model"
	"ridge/weights/tensor"
)

// samples are results with made-up numbers.
func samples() []*Result {
	at := time.Date(2026, 11, 27, 20, 30, 0, 0, time.UTC)
	base := Result{
		Build: "v1", CPU: "Sample CPU", Tier: "avx512", File: "m.gguf", Model: "llama 135M Q4_0", Size: 90 << 20, Parameters: 134515008,
		Threads: 2, KV: tensor.F16, Time: at, Load: 0.25, LoadBefore: 0.1, LoadAfter: 0.2,
	}
	prefill, decode, batch := base, base, base
	prefill.Work = roofline.Work{Prompt: 512, Seqs: 1, Chunk: 512}
	prefill.Seconds = []float64{0.5, 0.4, 0.512}
	prefill.Cost = roofline.Cost{Weights: 90e6, KVRead: 10e6, IntOps: 100e9, AttnOps: 10e9}
	prefill.reads, prefill.ints, prefill.floats = []float64{30e9, 31e9, 29e9}, []float64{900e9}, []float64{230e9}
	for i := range 5 {
		prefill.chunks = append(prefill.chunks, chunk{float64(i) * 2e9, 0.1 + float64(i)*2e9/92e9})
	}
	decode.Work = roofline.Work{Gen: 128, Depth: 4096, Seqs: 1, Chunk: 512}
	decode.Seconds = []float64{1, 1.28, 2}
	decode.stepSeconds = []float64{0.01, 0.011, 0.02}
	decode.Cost = roofline.Cost{Weights: 128 * 90e6, KVRead: 128 * 95e6, IntOps: 128 * 250e6, AttnOps: 128 * 280e6}
	decode.reads, decode.ints, decode.floats = prefill.reads, prefill.ints, prefill.floats
	decode.shares = []float64{0.5, 0.25, 0.75}
	decode.Pauses, decode.PauseMax = 4, 250e-6
	decode.Peers = []*PeerResult{{Name: "llama.cpp", Version: "abc (1)", Samples: []float64{50, 48, 51}}}
	batch.Work = roofline.Work{Gen: 64, Seqs: 8, Chunk: 512}
	batch.Model, batch.Size, batch.Parameters, batch.KV = "llama 1.1B F16", 2200<<20, 1100048384, tensor.F32
	batch.Act = model.ActInt16
	batch.Seconds = []float64{1}
	batch.Cost = roofline.Cost{Weights: 64 * 2200 << 20, FloatOps: 64 * 8 * 2.2e9}
	batch.LeftOut = []string{"llama.cpp is left out of tg64 x8: it runs one sequence"}
	all := []*Result{&prefill, &decode, &batch}
	for _, r := range all {
		r.finish()
	}
	return all
}

func TestOutput(t *testing.T) {
	for _, format := range Formats {
		for name, results := range map[string][]*Result{"": samples(), "-none": nil, "-plain": samples()[:1]} {
			var b bytes.Buffer
			w, err := NewWriter(&b, format)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range results {
				if err := w.Write(r); err != nil {
					t.Fatal(err)
				}
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			if len(results) > 0 || format == "json" {
				golden.Text(t, "output"+name+"."+format, b.String())
			} else if b.Len() > 0 {
				t.Errorf("%s: no result prints %q", format, b.String())
			}
			if format == "json" {
				var back []peerRecord
				if err := json.Unmarshal(b.Bytes(), &back); err != nil || len(back) != len(results) {
					t.Errorf("%d results read back as %d: %v", len(results), len(back), err)
				}
			}
		}
	}
	if _, err := NewWriter(nil, "xml"); err == nil {
		t.Error("xml: no error")
	}
}

// What ridge prints, ridge reads as a peer's output.
func TestOutputIsAPeers(t *testing.T) {
	for _, format := range []string{"json", "jsonl"} {
		var b bytes.Buffer
		w, _ := NewWriter(&b, format)
		for _, r := range samples() {
			if err := w.Write(r); err != nil {
				t.Fatal(err)
			}
		}
		w.Close()
		if got, _, err := readPeer(b.Bytes(), roofline.Work{Gen: 128, Depth: 4096}); err != nil || got < 95 || got > 105 {
			t.Errorf("%s: %v, %v", format, got, err)
		}
		if got, _, err := readPeer(b.Bytes(), roofline.Work{Gen: 64, Seqs: 8}); err != nil || got != 512 {
			t.Errorf("%s: %v, %v", format, got, err)
		}
	}
}

// A result that was written and read again is written as before.
func TestResultReadAgain(t *testing.T) {
	for _, r := range samples() {
		text, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		var back Result
		if err := json.Unmarshal(text, &back); err != nil {
			t.Fatal(err)
		}
		if again, err := json.Marshal(&back); err != nil || !bytes.Equal(again, text) {
			t.Errorf("%v: %s", err, cmp.Diff(string(text), string(again)))
		}
		if back.LimitText() != r.LimitText() || back.Act != r.Act || back.Work != r.Work || back.Speed != r.Speed || len(back.Peers) != len(r.Peers) {
			t.Errorf("%+v, want %+v", back, r)
		}
	}
	const good = `"type_k": "f16", "test_time": "2026-11-28T00:00:00Z"`
	for text, want := range map[string]string{
		`{"n_gen": "4"}`: "cannot unmarshal", `{}`: "type_k", `{"type_k": "f16"}`: "test_time",
		`{` + good + `, "peers": [null]}`: "found null", `{` + good + `, "activations": "int4"}`: "expected bf16, bf16x2, int8, mixed, fine or int16", `{` + good + `}`: "",
	} {
		var r Result
		if err := json.Unmarshal([]byte(text), &r); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", text, err, want)
		}
	}
}

func TestBound(t *testing.T) {
	for _, c := range []struct {
		r     Result
		part  float64
		limit string
	}{
		{Result{}, 0, ""},
		{Result{Seconds: []float64{2}}, 0, ""},
		{Result{Seconds: []float64{2}, ReadRate: 10, Cost: roofline.Cost{Weights: 10}}, 0.5, "read"},
		{Result{Seconds: []float64{4}, ReadRate: 10, IntRate: 5, FloatRate: 1, Cost: roofline.Cost{Weights: 10, IntOps: 15, AttnOps: 1}}, 1, "int8"},
		{Result{Seconds: []float64{4}, ReadRate: 10, IntRate: 5, FloatRate: 1, Cost: roofline.Cost{Weights: 10, IntOps: 5, FloatOps: 1}}, 0.5, "int8"},
		{Result{Seconds: []float64{4}, ReadRate: 10, FloatRate: 1, Cost: roofline.Cost{FloatOps: 2, AttnOps: 1}}, 0.75, "f32"},
		// Products of bfloat16 at their own peak, which float32's would put at 300%, and at that of float32 where there are none.
		{Result{Seconds: []float64{4}, ReadRate: 10, FloatRate: 1, BrainRate: 5, Cost: roofline.Cost{FloatOps: 1, BrainOps: 9, BrainAttn: 1}}, 0.75, "bf16"},
		{Result{Seconds: []float64{4}, ReadRate: 10, FloatRate: 1, BrainRate: 5, Cost: roofline.Cost{FloatOps: 2, BrainOps: 5}}, 0.75, "f32"},
		{Result{Seconds: []float64{4}, ReadRate: 10, FloatRate: 1, Cost: roofline.Cost{BrainOps: 2, BrainAttn: 1}}, 0.75, "f32"},
	} {
		if part, limit := c.r.bound(); part != c.part || limit != c.limit {
			t.Errorf("%+v: %v of %q, want %v of %q", c.r.Cost, part, limit, c.part, c.limit)
		}
	}
}

// The rate of attention is found in the times of a prompt's steps, whatever else they
// take, with a step that was interrupted among them; where steps hardly grow, or are
// few, nothing is said.
func TestAttentionRate(t *testing.T) {
	const rate, rest = 100e9, 0.4
	r := Result{Work: roofline.Work{Prompt: 4096, Seqs: 1, Chunk: 512}, FloatRate: 200e9, Seconds: []float64{1}}
	for i := range 8 {
		for k := range 3 {
			ops := float64(1+2*i) * 8e9
			c := chunk{ops, rest + ops/rate}
			if i == 3 && k < 2 {
				c.seconds += 5
			}
			r.chunks = append(r.chunks, c)
		}
	}
	if got := attention(r.chunks); math.Abs(got/rate-1) > 1e-9 {
		t.Errorf("%v operations a second, want %v", got, rate)
	}
	r.Attn = attention(r.chunks)
	if got, want := r.AttnText(), "attention of pp4096: 100 GOP/s, 50% of 200 f32 GOP/s"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := attention(r.chunks[:9]); got != 0 {
		t.Errorf("of three steps: %v", got)
	}
	for i := range r.chunks {
		r.chunks[i].seconds = 1 + r.chunks[i].attnOps/1e13
	}
	if got := attention(r.chunks); got != 0 {
		t.Errorf("of steps that hardly grow: %v", got)
	}
}

func TestKernelTable(t *testing.T) {
	var b bytes.Buffer
	err := WriteKernels(&b, []*KernelResult{
		{Type: "Q4_0", OutRows: 2048, Cols: 2048, Rows: 1, Tier: "avx512", Threads: 1, Seconds: 80e-6, Bytes: 29.5e9, Ops: 105e9, ReadRate: 31e9, OpsRate: 460e9, Bound: 0.95, Limit: "read"},
		{Type: "F16", OutRows: 576, Cols: 1536, Rows: 512, Tier: "avx2", Threads: 2, Seconds: 8e-3, Bytes: 0.2e9, Ops: 113e9, ReadRate: 31e9, OpsRate: 200e9, Bound: 0.565, Limit: "f32"},
	})
	if err != nil {
		t.Fatal(err)
	}
	golden.Text(t, "kernels.md", b.String())
}
