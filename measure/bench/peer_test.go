package bench

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ridge/measure/roofline"
	"ridge/weights/tensor"
)

func read(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// The samples are what the programs printed for a small model.
func TestReadPeer(t *testing.T) {
	for _, c := range []struct {
		file string
		w    roofline.Work
		want float64
	}{
		{"llama-bench.json", roofline.Work{Prompt: 16}, 5.982632},
		{"llama-bench.json", roofline.Work{Gen: 4, Seqs: 1}, 2.385615},
		{"llama-bench.json", roofline.Work{Prompt: 8, Gen: 2}, 2.237907},
		{"llama-bench.json", roofline.Work{Prompt: 16, Depth: 32}, 8.171713},
		{"llama-bench.json", roofline.Work{Gen: 4, Depth: 32}, 1.273278},
		{"llama-bench.json", roofline.Work{Prompt: 8, Gen: 2, Depth: 32}, 7.066869},
		{"ik-llama-bench.json", roofline.Work{Prompt: 16}, 826.564118},
		{"ik-llama-bench.json", roofline.Work{Gen: 4}, 8.190174},
		{"ik-llama-bench.json", roofline.Work{Gen: 4, Depth: 16}, 23.080087},
		{"llama-batched-bench.jsonl", roofline.Work{Prompt: 16, Seqs: 2}, 0},
		{"llama-batched-bench.jsonl", roofline.Work{Gen: 4, Depth: 16, Seqs: 2}, 0},
		{"llama-batched-bench.jsonl", roofline.Work{Gen: 4, Depth: 16}, 0},
	} {
		got, version, err := readPeer(read(t, c.file), c.w)
		if err != nil || c.want != 0 && got != c.want || got <= 0 {
			t.Errorf("%s: %v: %v, %v, want %v", c.file, c.w, got, err, c.want)
		}
		if (version == "0c1e570 (1)") != strings.HasPrefix(c.file, "llama-bench") {
			t.Errorf("%s: version %q", c.file, version)
		}
	}
	// One object a line says the same as an array.
	for _, w := range []roofline.Work{{Prompt: 16}, {Gen: 4, Depth: 32}} {
		if _, _, err := readPeer(read(t, "llama-bench.jsonl"), w); err != nil {
			t.Error(err)
		}
	}
	// ik_llama.cpp's "tg4@pp16" is no prompt of 16 and then 4 tokens.
	if _, _, err := readPeer(read(t, "ik-llama-bench.json"), roofline.Work{Prompt: 16, Gen: 4}); err == nil {
		t.Error("generation behind a prompt was taken for both")
	}
	// Lines before and after are passed over.
	noisy := "warning: [something]\n" + string(read(t, "llama-bench.json")) + "done\n"
	if got, _, err := readPeer([]byte(noisy), roofline.Work{Prompt: 16}); err != nil || got != 5.982632 {
		t.Errorf("with other lines: %v, %v", got, err)
	}
	for text, want := range map[string]string{
		"":                              "expected JSON records",
		"segmentation fault":            `found "segmentation fault"`,
		"{]":                            "expected JSON, found",
		`{"n_prompt": 16, "avg_ts": 0}`: "expected tokens per second, found 0",
		`{"n_prompt": 17, "avg_ts": 9}`: "expected a record of pp16, found 1 other",
		`[{"n_gen": 16, "avg_ts": 9}]`:  "expected a record of pp16, found 1 other",
	} {
		if _, _, err := readPeer([]byte(text), roofline.Work{Prompt: 16}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", text, err, want)
		}
	}
}

func FuzzReadPeer(f *testing.F) {
	for _, name := range []string{"llama-bench.json", "llama-bench.jsonl", "ik-llama-bench.json", "llama-batched-bench.jsonl"} {
		f.Add(read(f, name))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, w := range []roofline.Work{{Prompt: 16}, {Gen: 4, Depth: 16, Seqs: 2}} {
			if speed, _, err := readPeer(b, w); err == nil && !(speed > 0) {
				t.Errorf("speed %v without an error", speed)
			}
		}
	})
}

func TestPeerCommand(t *testing.T) {
	r := func(w roofline.Work) *Result {
		return &Result{File: "m.gguf", Threads: 3, KV: tensor.F16, Work: w}
	}
	for _, c := range []struct {
		peer string
		w    roofline.Work
		name string
		want string
	}{
		{"/opt/x/llama-bench -fa on", roofline.Work{Prompt: 512, Chunk: 512}, "llama-bench",
			"/opt/x/llama-bench -fa on -m m.gguf -t 3 -r 1 -o json -ub 512 -ctk f16 -ctv f16 -p 512 -n 0"},
		{"ik=/opt/x/llama-bench", roofline.Work{Gen: 64, Depth: 4096, Chunk: 256}, "ik",
			"/opt/x/llama-bench -m m.gguf -t 3 -r 1 -o json -ub 256 -ctk f16 -ctv f16 -p 0 -n 64 -d 4096"},
		{"ik=llama-bench -fa 1 -rtr 1", roofline.Work{Gen: 32, Depth: 4096, Chunk: 512}, "ik",
			"llama-bench -fa 1 -rtr 1 -m m.gguf -t 3 -r 1 -o json -ub 512 -ctk f16 -ctv f16 -p 0 -n 0 -gp 4096,32"},
		{"llama-bench", roofline.Work{Prompt: 512, Gen: 128, Chunk: 512}, "llama-bench",
			"llama-bench -m m.gguf -t 3 -r 1 -o json -ub 512 -ctk f16 -ctv f16 -p 0 -n 0 -pg 512,128"},
		{"llama-batched-bench", roofline.Work{Gen: 64, Depth: 128, Seqs: 8, Chunk: 512}, "llama-batched-bench",
			"llama-batched-bench -m m.gguf -t 3 -c 1600 -ub 512 -ctk f16 -ctv f16 -npp 128 -ntg 64 -npl 8 --output-format jsonl"},
		{"env 'A=b c' run --m={model} {pp}/{tg}/{depth}/{seqs}/{threads}/{batch}/{kv}/{ctx}", roofline.Work{Prompt: 1, Gen: 2, Depth: 3, Seqs: 4, Chunk: 5}, "env",
			"env|A=b c|run|--m=m.gguf|1/2/3/4/3/5/f16/88"},
	} {
		p, err := ParsePeer(c.peer)
		if err != nil {
			t.Fatal(err)
		}
		sep := " "
		if strings.Contains(c.want, "|") {
			sep = "|"
		}
		if got := strings.Join(p.command(r(c.w)), sep); got != c.want || p.Name != c.name {
			t.Errorf("%s (%s):\ngot  %s\nwant %s", c.peer, p.Name, got, c.want)
		}
	}
	for text, want := range map[string]string{"": "expected a command", "  ": "expected a command", "a 'b": "expected a closing '"} {
		if _, err := ParsePeer(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", text, err, want)
		}
	}
}

func TestPeerCannot(t *testing.T) {
	bench, _ := ParsePeer("llama-bench")
	ik, _ := ParsePeer("llama-bench -rtr 1")
	batched, _ := ParsePeer("llama-batched-bench")
	for _, c := range []struct {
		p   *Peer
		w   roofline.Work
		can bool
	}{
		{bench, roofline.Work{Gen: 4}, true}, {bench, roofline.Work{Gen: 4, Seqs: 2}, false},
		{ik, roofline.Work{Gen: 4, Depth: 2}, true}, {ik, roofline.Work{Prompt: 4}, true}, {ik, roofline.Work{Prompt: 4, Depth: 2}, false},
		{batched, roofline.Work{Gen: 4, Seqs: 2}, true}, {batched, roofline.Work{Prompt: 4, Seqs: 2}, true},
		{batched, roofline.Work{Prompt: 4, Gen: 4, Seqs: 2}, false}, {batched, roofline.Work{Prompt: 4, Depth: 4, Seqs: 2}, false},
	} {
		if err := c.p.can(c.w); (err == nil) != c.can {
			t.Errorf("%s: %v: %v", c.p.Name, c.w, err)
		}
	}
}

func TestTurn(t *testing.T) {
	want := [][]int{{0, 1, 2}, {1, 2, 0}, {2, 0, 1}, {0, 1, 2}}
	for i, w := range want {
		if got := turn(i, 3); !cmp.Equal(got, w) {
			t.Errorf("round %d: %v, want %v", i, got, w)
		}
	}
}
