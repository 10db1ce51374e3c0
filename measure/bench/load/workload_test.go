package load

import (
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"ridge/internal/testdata"
	"ridge/model"
	"ridge/text/tokenizer"
)

// Arrivals have the rate and the variation that they should have.
func TestArrivals(t *testing.T) {
	for _, burst := range []float64{0.1, 0.5, 1, 4, 100} {
		a := Arrivals{Rate: 20, Burstiness: burst, Seed: 3}
		const n = 40000
		times := a.Times()
		var sum, sq float64
		last := time.Duration(0)
		for range n {
			at := times()
			gap := (at - last).Seconds()
			if gap < 0 {
				t.Fatal("time goes back")
			}
			last = at
			sum, sq = sum+gap, sq+gap*gap
		}
		mean := sum / n
		cv := math.Sqrt(sq/n-mean*mean) / mean
		want := 1 / math.Sqrt(burst)
		// Five standard errors; that of cv is larger for tails that are heavier.
		if e := math.Abs(mean*20 - 1); e > 5*want/math.Sqrt(n) {
			t.Errorf("burstiness %v: mean gap %v s, want 0.05", burst, mean)
		}
		if math.Abs(cv/want-1) > 0.06 {
			t.Errorf("burstiness %v: variation %v, want %v", burst, cv, want)
		}
		again := a.Times()
		if again() != (Arrivals{Rate: 20, Burstiness: burst, Seed: 3}).Times()() {
			t.Error("not deterministic")
		}
	}
}

// Texts have exactly the tokens that were asked for, by the tokenizer of a
// model, and a shared part stays one.
func TestTextsOfRealTokenizer(t *testing.T) {
	for _, name := range []string{"tiny", "smollm2", "gemma3", "qwen"} {
		t.Run(name, func(t *testing.T) {
			tok, err := model.OpenTokenizer(testdata.Model(t, name))
			if err != nil {
				t.Fatal(err)
			}
			count := func(s string) int { return len(tok.Encode(nil, s, tokenizer.EncodeOptions{})) }
			w := NewWords(count)
			rng := newRand(1, 2)
			for _, n := range []int{1, 2, 3, 17, 128, 1000} {
				head := w.Text(rng, n, false)
				if got := count(head); got != n {
					t.Errorf("%d tokens, want %d", got, n)
				}
				if got := count(head + w.Text(rng, n, true)); got != 2*n {
					t.Errorf("%d tokens together, want %d", got, 2*n)
				}
			}
		})
	}
}

func TestWorkloads(t *testing.T) {
	words := func(s string) int { return len(strings.Fields(s)) }
	w := Workload{Kind: Prefix, Input: 100, Output: 3, Share: .8, Groups: 2, Seed: 5}
	if err := w.Complete(); err != nil {
		t.Fatal(err)
	}
	a, b, c := w.Session(0), w.Session(1), w.Session(2)
	head := strings.Join(strings.Fields(a.Turns[0].Text)[:80], " ")
	if words(a.Turns[0].Text) != 100 || !strings.HasPrefix(c.Turns[0].Text, head) || strings.HasPrefix(b.Turns[0].Text, head) || a.Turns[0].Text == c.Turns[0].Text {
		t.Errorf("groups: %+v %+v %+v", a, b, c)
	}
	if again := w.Session(0); again.Turns[0] != a.Turns[0] {
		t.Error("not deterministic")
	}
	w = Workload{Kind: ShareGPT, Seed: 5}
	if err := w.Complete(); err != nil {
		t.Fatal(err)
	}
	var in, out []float64
	for i := range 2000 {
		s := w.Session(i)
		in, out = append(in, float64(words(s.Turns[0].Text))), append(out, float64(s.Turns[0].Max))
	}
	di, do := DistOf(in), DistOf(out)
	if math.Abs(di.P50-120) > 15 || math.Abs(do.P50-170) > 15 || di.Max != 1024 || do.Max != 1024 || di.Min < 1 {
		t.Errorf("prompts %+v, answers %+v", di, do)
	}
	w = Workload{Kind: Bimodal, Seed: 5}
	if err := w.Complete(); err != nil {
		t.Fatal(err)
	}
	long := 0
	for i := range 800 {
		switch n := w.Session(i).Turns[0].Max; n {
		case 400:
			long++
		case 16:
		default:
			t.Errorf("an answer of %d", n)
		}
	}
	if long < 70 || long > 135 {
		t.Errorf("%d long answers of 800", long)
	}
	for _, k := range Kinds() {
		w := Workload{Kind: k, Trace: []TraceRow{{Input: 1, Output: 1}}}
		if err := w.Complete(); err != nil || !strings.HasPrefix(w.String(), string(k)) {
			t.Errorf("%s: %v: %s", k, err, w.String())
		}
	}
	guess := NewWords(nil)
	guess.Fit(64, 96)
	if n := words(guess.Text(newRand(1, 1), 150, false)); n != 100 {
		t.Errorf("%d words for 150 tokens at 1.5 tokens a word", n)
	}
}

const trace = `{"timestamp": 2000, "input_length": 1300, "output_length": 5, "hash_ids": [7, 8, 9]}

{"timestamp": 1000, "input_tokens": 1100, "output_tokens": 0, "hash_ids": [7, 8, 10]}
{"timestamp": 1500.5, "prompt": "a b c", "completion_tokens": 9}
`

func TestTrace(t *testing.T) {
	rows, err := ReadTrace(strings.NewReader(trace))
	if err != nil || len(rows) != 3 || rows[0].Input != 1100 || rows[0].At != 0 || rows[0].Output != 1 || rows[1].At != 500500*time.Microsecond || rows[2].At != time.Second {
		t.Fatalf("%v: %+v", err, rows)
	}
	w := Workload{Kind: Trace, Trace: rows, Speed: 2}
	if err := w.Complete(); err != nil {
		t.Fatal(err)
	}
	a, b, c := w.Session(0), w.Session(1), w.Session(2)
	fa, fc := strings.Fields(a.Turns[0].Text), strings.Fields(c.Turns[0].Text)
	if len(fa) != 1100 || len(fc) != 1300 || b.Turns[0].Text != "a b c" || c.At != 500*time.Millisecond || c.Group != 7 {
		t.Fatalf("%d and %d words, %+v at %v", len(fa), len(fc), b, c.At)
	}
	same := 0
	for same < len(fa) && fa[same] == fc[same] {
		same++
	}
	if same < 1024 || same > 1030 {
		t.Errorf("%d words in common, want two blocks of 512", same)
	}
	w.Scale = 0.1
	if n := len(strings.Fields(w.Session(2).Turns[0].Text)); n != 130 {
		t.Errorf("%d words of 1300 × 0.1", n)
	}
	f := &fake{}
	rep, err := Run(t.Context(), Options{Target: f.start(t), Workload: Workload{Kind: Trace, Trace: rows, Speed: 20, Scale: .01}})
	if err != nil || rep.Completed != 3 || rep.OutputTokens != 3 {
		t.Errorf("%v: %+v", err, rep)
	}
	for _, bad := range []string{"", "x", `{"timestamp":-1,"input_length":1,"output_length":1}`, `{"input_length":1,"output_length":1}`, `{"timestamp":0,"output_length":1}`,
		`{"timestamp":0,"input_length":1}`, `{"timestamp":0,"input_length":-1,"output_length":1}`, `{"timestamp":0,"input_length":100000000000,"output_length":1}`, `{"timestamp":1e300,"input_length":1,"output_length":1}`} {
		if _, err := ReadTrace(strings.NewReader(bad)); err == nil {
			t.Errorf("%q passes", bad)
		}
	}
}

func FuzzReadTrace(f *testing.F) {
	f.Add(trace)
	f.Add(`{"timestamp":0,"input_length":1,"output_length":1,"prefix_hash":18446744073709551615}`)
	f.Fuzz(func(t *testing.T, s string) {
		rows, err := ReadTrace(strings.NewReader(s))
		if err != nil {
			return
		}
		last := time.Duration(0)
		for _, r := range rows {
			if r.At < last || r.Output < 1 || r.Output > maxTraceSize || r.Prompt == "" && r.Input < 1 || r.Input > maxTraceSize {
				t.Fatalf("%+v after %v", r, last)
			}
			last = r.At
		}
		w := Workload{Kind: Trace, Trace: rows, MaxInput: 2000, MaxOutput: 100}
		if err := w.Complete(); err != nil {
			t.Fatal(err)
		}
		for i := range min(len(rows), 4) {
			if s := w.Session(i); len(s.Turns) != 1 || s.Turns[0].Text == "" || s.Turns[0].Max > 100 {
				t.Fatalf("%+v", s)
			}
		}
	})
}

func FuzzParseMetrics(f *testing.F) {
	f.Add("a{b=\"c}\\\"\"} 1 2\na 3\n# x\n")
	f.Fuzz(func(t *testing.T, s string) {
		_, _ = ParseMetrics(strings.NewReader(s))
	})
}

func TestParseMetrics(t *testing.T) {
	m, err := ParseMetrics(strings.NewReader("# HELP a b\na{x=\"1\"} 2\na{x=\"}\\\" 9\"} 3 1234\nb 1e3\nbroken{x=\"\nc\n"))
	if err != nil || m["a"] != 5 || m["b"] != 1000 || len(m) != 2 {
		t.Errorf("%v: %v", err, m)
	}
}

func TestCommands(t *testing.T) {
	o := CommandOptions{Self: "/bin/me", Model: "/m.gguf"}
	for in, want := range map[string]string{
		"ridge --sched static":                "ridge: /bin/me serve /m.gguf --host {host} --port {port} --log-level error --sched static",
		"static=ridge --sched static":         "static: /bin/me serve /m.gguf --host {host} --port {port} --log-level error --sched static",
		"/x/llama-server -np 8":               "llama-server: /x/llama-server -np 8 --host {host} --port {port} -m /m.gguf",
		"v='a b' serve {model} --port={port}": "v: a b serve /m.gguf --port={port}",
	} {
		c, err := ParseCommand(in, o)
		if err != nil {
			t.Errorf("%s: %v", in, err)
			continue
		}
		if got := c.Name + ": " + strings.Join(c.args, " "); got != want {
			t.Errorf("%s: got %s, want %s", in, got, want)
		}
	}
	for _, bad := range []string{"", "program without", "'x"} {
		if _, err := ParseCommand(bad, o); err == nil {
			t.Errorf("%q passes", bad)
		}
	}
	if _, err := ParseCommand("ridge", CommandOptions{}); err == nil {
		t.Error("no model passes")
	}
	// A program that ends at once says why.
	c, err := ParseCommand(`x=sh -c "echo sorry {port}; exit 3"`, o)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := c.Start(t.Context(), 20*time.Second); err == nil || !strings.Contains(err.Error(), "sorry") || !strings.Contains(err.Error(), "exit status 3") {
		t.Errorf("got %v", err)
	}
	if peakRSS(os.Getpid()) < 1<<20 || cpuSeconds(os.Getpid()) < 0 {
		t.Error("nothing known of this process")
	}
}
