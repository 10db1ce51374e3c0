package load

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ridge/measure/bench/chart"
)

func fixed(in, out int) Workload { return Workload{Kind: Fixed, Input: in, Output: out, Seed: 1} }

// What the clients of a server with known times see.
func TestClosedLoop(t *testing.T) {
	for name, chat := range map[string]bool{"completions": false, "chat": true} {
		t.Run(name, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { closedLoop(t, chat) }) })
	}
}

func closedLoop(t *testing.T, chat bool) {
	f := &fake{first: 40 * time.Millisecond, gap: 5 * time.Millisecond}
	target := f.start(t)
	target.Chat = chat
	var last Progress
	rep, err := Run(t.Context(), Options{Target: target, Workload: fixed(20, 9), Clients: 4, Sessions: 12, Progress: func(p Progress) { last = p }})
	if err != nil {
		t.Fatal(err)
	}
	if rep.Completed != 12 || rep.Failed != 0 || rep.InputTokens != 12*20 || rep.OutputTokens != 12*9 || rep.CachedTokens != 36 || rep.Short != 0 || rep.Guessed {
		t.Errorf("counts: %+v", rep)
	}
	if rep.PeakRunning != 4 || f.most.Load() != 4 {
		t.Errorf("%d requests at one time, the server saw %d, want 4", rep.PeakRunning, f.most.Load())
	}
	for name, c := range map[string]struct {
		d    Dist
		n    int
		want float64
	}{
		"ttft": {rep.TTFT, 12, 40}, "tpot": {rep.TPOT, 12, 5}, "itl": {rep.ITL, 12 * 8, 5}, "e2e": {rep.E2E, 12, 80},
	} {
		if c.d.N != c.n || c.d.Min != c.want || c.d.P50 != c.want || c.d.Max != c.want {
			t.Errorf("%s: %+v, want %v ms", name, c.d, c.want)
		}
	}
	for _, r := range rep.Records {
		// The parts are the whole.
		gaps := r.First - r.Sent
		for i := 1; i < len(r.Pieces); i++ {
			gaps += r.Pieces[i] - r.Pieces[i-1]
		}
		if gaps != r.Last-r.Sent || r.Sent < r.Due || r.End < r.Last {
			t.Errorf("%+v: TTFT and gaps are %v, the whole %v", r, gaps, r.Last-r.Sent)
		}
	}
	if math.Abs(rep.Duration-3*.080) > 1e-6 {
		t.Errorf("3 rounds of 80 ms took %v s", rep.Duration)
	}
	if got := rep.OutputRate * rep.Duration; math.Abs(got-108) > 1e-6 {
		t.Errorf("throughput × time = %v, want 108", got)
	}
	sum := 0.0
	for _, s := range rep.Seconds {
		sum += s.Output
	}
	if math.Abs(sum-108) > 1e-6 {
		t.Errorf("the timeline has %v tokens, want 108", sum)
	}
	// A run of a quarter of a second has a curve, too, and it says what the table says.
	rates, running, width := rep.over()
	area, mean := 0.0, 0.0
	for k := range rates {
		area, mean = area+rates[k]*width, mean+running[k]*width
	}
	if len(rates) < 2 || math.Abs(area-108) > 1e-6 || math.Abs(mean/rep.Duration-rep.Concurrency) > 1e-6 {
		t.Errorf("%d parts with %v tokens, %v requests; want 108 and %v", len(rates), area, mean/rep.Duration, rep.Concurrency)
	}
	if last.Done != 12 || last.Sessions != 12 || last.Pieces != 108 || last.Running != 0 {
		t.Errorf("progress at the end: %+v", last)
	}
	if !rep.Server.Ridge || rep.Server.Steps != 10*float64(f.metrics.Load()-1) {
		t.Errorf("server: %+v after %d scrapes", rep.Server, f.metrics.Load())
	}
	if b := f.bodies[0]; b["ignore_eos"] != true || b["model"] != "fake-1" || b["temperature"] != 0.0 {
		t.Errorf("body: %v", b)
	}
}

// Failures are counted by kind and do not stop the others.
func TestFailures(t *testing.T) { synctest.Test(t, failures) }

func failures(t *testing.T) {
	kinds := []string{"", "429", "cut", "error", "garbage", "hang"}
	f := &fake{gap: time.Millisecond, fail: func(n int64) string { return kinds[int(n-1)%len(kinds)] }}
	rep, err := Run(t.Context(), Options{Target: f.start(t), Workload: fixed(4, 6), Clients: 1, Sessions: 12, Timeout: 300 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]int{"status 429": 2, FailCut: 2, FailStream: 4, FailTimeout: 2}
	for k, n := range want {
		if rep.Failures[k] != n {
			t.Errorf("%s: %d, want %d (%v)", k, rep.Failures[k], n, rep.Failures)
		}
	}
	if rep.Completed != 2 || rep.Failed != 10 || rep.E2E.N != 2 {
		t.Errorf("%d completed, %d failed, %d times", rep.Completed, rep.Failed, rep.E2E.N)
	}
	if s := rep.Examples["status 429"]; !strings.Contains(s, "queue full") {
		t.Errorf("example %q", s)
	}
}

// Nobody is there.
func TestNoServer(t *testing.T) {
	gone := &Target{Name: "gone", URL: "http://127.0.0.1:1"}
	rep, err := Run(t.Context(), Options{Target: gone, Workload: fixed(4, 6), Clients: 2, Sessions: 4})
	if err != nil || rep.Failures[FailConnect] != 4 {
		t.Errorf("%v: %v", err, rep.Failures)
	}
	if _, err = Run(t.Context(), Options{Target: gone, Workload: fixed(4, 6), Clients: 2, Sessions: 4, Warmup: 1}); err == nil {
		t.Error("a server that is not there passes the warm-up")
	}
}

// A server that refuses to list its models is quoted.
func TestModelsRefused(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no key", http.StatusUnauthorized) }))
	defer srv.Close()
	target := &Target{Name: "it", URL: srv.URL}
	if _, err := target.FirstModel(t.Context()); err == nil || !strings.Contains(err.Error(), "401 Unauthorized: no key") {
		t.Errorf("got %v", err)
	}
}

// A server that does not count is counted for.
func TestNoUsage(t *testing.T) { synctest.Test(t, noUsage) }

func noUsage(t *testing.T) {
	f := &fake{noUsage: true}
	rep, err := Run(t.Context(), Options{Target: f.start(t), Workload: fixed(7, 5), Clients: 2, Sessions: 4, Warmup: 1})
	if err != nil || !rep.Guessed || rep.OutputTokens != 20 || rep.InputTokens != 28 {
		t.Errorf("%v: %+v", err, rep)
	}
}

// What was answered and what was under way at Ctrl-C is told.
func TestInterrupted(t *testing.T) { synctest.Test(t, interrupted) }

func interrupted(t *testing.T) {
	f := &fake{first: time.Millisecond, gap: 20 * time.Millisecond, fail: func(n int64) string {
		if n > 2 {
			return "hang"
		}
		return ""
	}}
	ctx, stop := context.WithTimeout(t.Context(), 700*time.Millisecond)
	defer stop()
	rep, err := Run(ctx, Options{Target: f.start(t), Workload: fixed(7, 5), Clients: 2, Sessions: 40})
	if err != nil || !rep.Interrupted || rep.Completed != 2 || rep.Failed != 0 || rep.Stopped != 2 {
		t.Errorf("%v: %d completed, %d failed, %d under way", err, rep.Completed, rep.Failed, rep.Stopped)
	}
}

// Requests of an open loop come when they are due, whatever the server does.
func TestOpenLoop(t *testing.T) { synctest.Test(t, openLoop) }

func openLoop(t *testing.T) {
	f := &fake{first: 50 * time.Millisecond}
	a := &Arrivals{Rate: 100, Seed: 4}
	rep, err := Run(t.Context(), Options{Target: f.start(t), Workload: fixed(3, 1), Arrivals: a, Sessions: 40})
	if err != nil || rep.Completed != 40 {
		t.Fatalf("%v: %+v", err, rep)
	}
	times := a.Times()
	var due []time.Duration
	for range 40 {
		due = append(due, times())
	}
	for _, r := range rep.Records {
		if !slices.Contains(due, r.Due) || r.Sent != r.Due {
			t.Errorf("session %d: due at %v, sent at %v", r.Session, r.Due, r.Sent)
		}
	}
	if rep.PeakRunning < 3 {
		t.Errorf("at most %d at one time: they wait for each other", rep.PeakRunning)
	}
	rep, err = Run(t.Context(), Options{Target: f.start(t), Workload: fixed(3, 1), Arrivals: a, Sessions: 12, MaxClients: 2})
	if err != nil || rep.PeakRunning != 2 || rep.Late.Max == 0 {
		t.Errorf("%v: %d at one time, want 2; late %+v", err, rep.PeakRunning, rep.Late)
	}
	rep, err = Run(t.Context(), Options{Target: f.start(t), Workload: fixed(3, 1), Arrivals: a, Duration: 200 * time.Millisecond})
	if err != nil || rep.Completed < 5 || rep.Completed > 60 {
		t.Errorf("%v: %d requests in 200 ms at 100/s", err, rep.Completed)
	}
}

// A conversation has all that was said before in its prompt.
func TestTurns(t *testing.T) { synctest.Test(t, turns) }

func turns(t *testing.T) {
	f := &fake{}
	target := f.start(t)
	target.Chat = true
	rep, err := Run(t.Context(), Options{Target: target, Workload: Workload{Kind: Turns, Turns: 3, Input: 5, Output: 2, Seed: 9}, Clients: 1, Sessions: 2})
	if err != nil || rep.Completed != 6 {
		t.Fatalf("%v: %+v", err, rep)
	}
	for i, want := range []int{5, 12, 19, 5, 12, 19} {
		if got := len(strings.Fields(f.prompts[i])); got != want {
			t.Errorf("request %d: %d words, want %d", i, got, want)
		}
		if i%3 > 0 && !strings.HasPrefix(f.prompts[i], f.prompts[i-1]) {
			t.Errorf("request %d does not go on from the one before", i)
		}
	}
	if len(f.bodies[2]["messages"].([]any)) != 5 {
		t.Errorf("third turn: %v", f.bodies[2]["messages"])
	}
}

// The times between the pieces of the streams are sorted by whether the long
// prompt was being read.
func TestIntruder(t *testing.T) { synctest.Test(t, intruder) }

func intruder(t *testing.T) {
	f := &fake{first: 100 * time.Millisecond, gap: 5 * time.Millisecond}
	w := Workload{Kind: Intruder, Streams: 3, Input: 4, Output: 30, Long: 200, After: 150 * time.Millisecond, Intruders: 2, Seed: 2}
	rep, err := Run(t.Context(), Options{Target: f.start(t), Workload: w})
	if err != nil {
		t.Fatal(err)
	}
	d := rep.Disturbed
	if d == nil || d.TTFT.N != 2 || d.Prompt != 200 || d.TTFT.Min != 100 || d.TTFT.Max != 100 || d.Before.N == 0 || d.While.N == 0 || rep.Failed != 0 {
		t.Fatalf("%+v, %d failed", d, rep.Failed)
	}
	if rep.Stopped == 0 {
		t.Error("the streams ended by themselves")
	}
	// The same by hand.
	recs := []Record{
		{Pieces: []time.Duration{0, 10, 20, 200, 210}, First: 1},
		{Intruder: true, Sent: 25, First: 190},
	}
	got := disturbance(recs, false)
	if got.Before.N != 2 || got.While.N != 1 || got.While.Max != ms(180) {
		t.Errorf("%+v", got)
	}
}

// Agents come at once, with the same beginning, and go on after pauses; what they do to
// the streams, and how long they hear nothing, is told.
func TestAgents(t *testing.T) { synctest.Test(t, comingAgents) }

func comingAgents(t *testing.T) {
	f := &fake{first: 100 * time.Millisecond, gap: 5 * time.Millisecond}
	w := Workload{Kind: Agents, Streams: 2, Input: 4, Output: 30, Long: 300, After: 150 * time.Millisecond, Intruders: 3, Turns: 2, Pause: time.Second, Seed: 2}
	rep, err := Run(t.Context(), Options{Target: f.start(t), Workload: w})
	if err != nil {
		t.Fatal(err)
	}
	d := rep.Disturbed
	if d == nil || d.TTFT.N != 6 || d.Silent != 100 || d.Before.N == 0 || d.While.N == 0 || d.Slower != 1 || rep.Failed != 0 {
		t.Fatalf("%+v, %d failed", d, rep.Failed)
	}
	if err := w.Complete(); err != nil {
		t.Fatal(err)
	}
	begin := w.agent(0).Turns[0].Text
	n, agents := 0, 0
	for _, p := range f.prompts {
		if strings.HasPrefix(p, begin[:200]) {
			agents++
		}
		n = max(n, len(strings.Fields(p)))
	}
	if agents != 6 || n < 300 || d.Prompt != n {
		t.Errorf("%d prompts of agents, the longest of %d words, %d told", agents, n, d.Prompt)
	}
}

// The longest session of an agent has room in the context that the server tells.
func TestAgentsFitContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{first: time.Millisecond, gap: time.Millisecond, context: 4400}
		w := Workload{Kind: Agents, Streams: 1, Input: 4, Output: 30, Long: 4000, After: 20 * time.Millisecond, Intruders: 2, Turns: 3, Pause: time.Millisecond, Seed: 2}
		rep, err := Run(t.Context(), Options{Target: f.start(t), Workload: w})
		if err != nil {
			t.Fatal(err)
		}
		longest := 0
		for _, r := range rep.Records {
			longest = max(longest, r.Prompt+r.Output)
		}
		if longest > f.context || longest < f.context*9/10 {
			t.Errorf("a session of %d tokens in a context of %d", longest, f.context)
		}
		f.context = 300
		if _, err := Run(t.Context(), Options{Target: f.start(t), Workload: w}); err == nil || !strings.Contains(err.Error(), "a context of 300") {
			t.Errorf("a context of 300: %v", err)
		}
	})
}

func TestSLO(t *testing.T) {
	slo, err := ParseSLO("ttft:500ms, tpot:50ms,itl:100ms,e2e:2s")
	if err != nil || len(slo) != 4 {
		t.Fatal(slo, err)
	}
	s := time.Second
	good := Record{Sent: s, Due: s, First: s + 400*time.Millisecond, Last: s + 600*time.Millisecond, Output: 5, Pieces: []time.Duration{s + 400*time.Millisecond, s + 450*time.Millisecond}}
	for i, change := range []func(*Record){
		func(r *Record) { r.Due = 0 }, func(r *Record) { r.Output = 4 }, func(r *Record) { r.Pieces[1] = s + 501*time.Millisecond }, func(r *Record) { r.Last += 2 * s },
	} {
		r := good
		r.Pieces = slices.Clone(r.Pieces)
		if !slo[i].kept(&r) {
			t.Errorf("%v is not kept", slo[i])
		}
		change(&r)
		if slo[i].kept(&r) {
			t.Errorf("%v is kept", slo[i])
		}
	}
	for _, bad := range []string{"ttft", "ttft:5", "x:1s", "ttft:-1s"} {
		if _, err := ParseSLO(bad); err == nil {
			t.Errorf("%q passes", bad)
		}
	}
}

// Percentiles as numpy.percentile has them.
func TestDist(t *testing.T) {
	var x []float64
	for i := range 101 {
		x = append(x, float64(100-i))
	}
	d := DistOf(x)
	if d.P50 != 50 || d.P90 != 90 || d.P99 != 99 || d.Min != 0 || d.Max != 100 || d.Mean < 49.999 || d.Mean > 50.001 || math.Abs(d.Std-29.1547594) > 1e-6 {
		t.Errorf("%+v", d)
	}
	if d := DistOf([]float64{1, 2, 3, 10}); d.P50 != 2.5 || math.Abs(d.P90-7.9) > 1e-9 {
		t.Errorf("%+v", d)
	}
}

// The highest load with nine of ten in time.
func TestSweep(t *testing.T) {
	slo, _ := ParseSLO("ttft:1s")
	var reports []*Report
	for i, good := range []int{100, 95, 40} {
		reports = append(reports, &Report{Target: "x", Rate: float64(i + 1), Completed: 90, Failed: 10, Good: good, Goodput: float64(good) / 10, SLO: slo})
	}
	var b bytes.Buffer
	Sweep(&b, reports)
	if s := b.String(); !strings.Contains(s, "in time: 2 requests/s") || !strings.Contains(s, "40.0%") {
		t.Errorf("got\n%s", s)
	}
	b.Reset()
	if Sweep(&b, reports[:1]); b.Len() > 0 {
		t.Errorf("a single load is swept: %s", b.String())
	}
}

func TestOptionsAreChecked(t *testing.T) {
	target := &Target{}
	for want, o := range map[string]Options{
		"expected a server":      {Workload: fixed(1, 1), Clients: 1, Sessions: 1},
		"found neither":          {Target: target, Workload: fixed(1, 1), Sessions: 1},
		"found both":             {Target: target, Workload: fixed(1, 1), Clients: 1, Arrivals: &Arrivals{Rate: 1}, Sessions: 1},
		"or a duration":          {Target: target, Workload: fixed(1, 1), Clients: 1},
		"per second above 0":     {Target: target, Workload: fixed(1, 1), Arrivals: &Arrivals{}, Sessions: 1},
		"burstiness":             {Target: target, Workload: fixed(1, 1), Arrivals: &Arrivals{Rate: 1, Burstiness: -1}, Sessions: 1},
		"expected one of":        {Target: target, Workload: Workload{Kind: "x"}, Clients: 1, Sessions: 1},
		"expected requests":      {Target: target, Workload: Workload{Kind: Trace}},
		"share":                  {Target: target, Workload: Workload{Kind: Prefix, Share: 2}, Clients: 1, Sessions: 1},
		"found -1":               {Target: target, Workload: fixed(-1, 1), Clients: 1, Sessions: 1},
		"no negative limits":     {Target: target, Workload: fixed(1, 1), Clients: 1, Sessions: -1},
		"expected positive time": {Target: target, Workload: Workload{Kind: Fixed, Speed: -1}, Clients: 1, Sessions: 1},
	} {
		if _, err := Run(t.Context(), o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// The table, the comparison, JSON and the page have what they should.
func TestOutput(t *testing.T) { synctest.Test(t, output) }

func output(t *testing.T) {
	f := &fake{first: 5 * time.Millisecond, gap: time.Millisecond, fail: func(n int64) string {
		if n%5 == 0 {
			return "cut"
		}
		return ""
	}}
	var reports []*Report
	slo, _ := ParseSLO("ttft:10s")
	for round := range 2 {
		for _, name := range []string{"a<b", "peer"} {
			target := f.start(t)
			target.Name = name
			rep, err := Run(t.Context(), Options{Target: target, Workload: fixed(8, 4), Clients: 2, Sessions: 6, SLO: slo})
			if err != nil {
				t.Fatal(err)
			}
			rep.Round = round + 1
			reports = append(reports, rep)
		}
	}
	var b bytes.Buffer
	reports[0].Print(&b)
	for _, want := range []string{"Successful requests:", "Failed requests:", "cut off", "Output token throughput (tok/s):", "Time to first token (TTFT)", "Inter-token latency (ITL)", "Goodput (req/s):", "p99", "Server: steps:"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
	b.Reset()
	Compare(&b, reports)
	if s := b.String(); !strings.Contains(s, "×") || !strings.Contains(s, "TTFT p50") || !strings.Contains(s, "medians of 2 rounds") {
		t.Errorf("comparison:\n%s", s)
	}
	b.Reset()
	if err := HTML(&b, reports, "v1"); err != nil {
		t.Fatal(err)
	}
	page := b.String()
	for what, n := range map[string]int{"<svg": 6 + 4, "</svg>": 10, "<path class=\"l ": 6 * 4, "<details>": 4, "<h2>": 1, "Output tokens per second": 12, "class=\"f\"": 0} {
		got := strings.Count(page, what)
		if what == "Output tokens per second" {
			got *= 6
		}
		if n > 0 && got != n || n == 0 && got == 0 {
			t.Errorf("%d of %q, want %d", got, what, n)
		}
	}
	// What is linked is in the page: its own figures, for saving, and one script.
	page = regexp.MustCompile(`href="data:image/svg\+xml;base64,[A-Za-z0-9+/=]+"`).ReplaceAllString(page, "")
	page = strings.Replace(page, "<script>"+chart.SavePNG, "", 1)
	for _, bad := range []string{"src=", "href=", "@import", "<script", "url(", "NaN", "Inf", "a<b"} {
		if strings.Contains(page, bad) {
			t.Errorf("the page has %q", bad)
		}
	}
	testFigures(t, reports)
	out, err := json.Marshal(reports[0])
	if err != nil {
		t.Fatal(err)
	}
	var m map[string]any
	if err := json.Unmarshal(out, &m); err != nil || m["completed"] == nil || m["output_throughput"] == nil || m["ttft_ms"].(map[string]any)["p99"] == nil {
		t.Errorf("%v: %s", err, out)
	}
}

// Each figure is a file that stands alone.
func testFigures(t *testing.T, reports []*Report) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "figures")
	if err := WriteFigures(dir, reports); err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 6+4 {
		t.Fatalf("%d figures, want 10: %v", len(files), err)
	}
	for _, f := range files {
		b, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		var svg struct {
			XMLName xml.Name
			Width   string `xml:"width,attr"`
		}
		if err := xml.Unmarshal(b, &svg); err != nil || svg.XMLName.Space != "http://www.w3.org/2000/svg" || svg.Width == "" {
			t.Errorf("%s: %v: %+v", f.Name(), err, svg)
		}
		if strings.Contains(string(b), "var(") || strings.Contains(string(b), "currentColor") {
			t.Errorf("%s needs the page's style", f.Name())
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "1-time-to-first-token.svg")); err != nil {
		t.Error(err)
	}
}
