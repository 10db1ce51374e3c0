package bench

import (
	"bytes"
	"encoding/xml"
	"html"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"ridge/measure/bench/chart"
	"ridge/measure/roofline"
)

// deep are results at depths and with sequences, two of them with a peer.
func deep() []*Result {
	of := func(r Result, w roofline.Work, seconds ...float64) *Result {
		w.Chunk = 512
		r.Work, r.Seconds = w, seconds
		return &r
	}
	var all []*Result
	s := samples()
	prefill, base := *s[0], *s[1]
	all = append(all, of(prefill, roofline.Work{Prompt: 512, Seqs: 1}, 0.5, 0.4, 0.512))
	for i, depth := range []int{0, 4096, 16384} {
		r := of(base, roofline.Work{Gen: 128, Depth: depth, Seqs: 1}, 1+float64(i), 1.28+float64(i), 2+float64(i))
		r.Cost.KVRead = int64(128 * depth * 23000)
		r.Peers = nil
		if depth > 0 {
			r.Peers = []*PeerResult{{Name: "a<b", Samples: []float64{50 / float64(i), 48 / float64(i)}}}
		}
		all = append(all, r)
	}
	for _, n := range []int{2, 4, 8} {
		r := of(base, roofline.Work{Gen: 128, Seqs: n}, 1.2, 1.3)
		r.Peers, r.Cost.KVRead, r.Cost.IntOps = nil, 0, base.Cost.IntOps*float64(n)
		all = append(all, r)
	}
	for _, r := range all {
		r.finish()
	}
	return all
}

// The page says what the table says, draws only what was measured and needs nothing
// from elsewhere.
func TestPage(t *testing.T) {
	wide, depth, seqs, roof := "1-speed-of-each-repetition", "1-generation-speed-against-depth", "1-generation-speed-against-sequences", "1-roofline"
	unprobed := deep()[:1]
	twins := samples()[:2] // of one name, in two files
	twins[1].File = "other/m.gguf"
	unprobed[0].ReadRate, unprobed[0].IntRate, unprobed[0].FloatRate, unprobed[0].Limit = 0, 0, 0, ""
	for name, c := range map[string]struct {
		results []*Result
		figures []string
	}{
		"none":     {nil, nil},
		"empty":    {[]*Result{{Tier: "avx2"}}, nil},
		"one":      {deep()[:1], []string{wide, roof}},
		"unprobed": {unprobed, []string{wide}},
		"deep":     {deep(), []string{wide, depth, seqs, roof}},
		"twins":    {twins, []string{wide, roof, "2-speed-of-each-repetition", "2-roofline"}},
		"models":   {samples(), []string{wide, roof, "2-speed-of-each-repetition"}},
	} {
		t.Run(name, func(t *testing.T) { testPage(t, c.results, c.figures) })
	}
}

func testPage(t *testing.T, results []*Result, figures []string) {
	var b, table bytes.Buffer
	if err := HTML(&b, results); err != nil {
		t.Fatal(err)
	}
	page := b.String()
	w, _ := NewWriter(&table, "md")
	for _, r := range results {
		if err := w.Write(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(table.String()) {
		if strings.HasPrefix(line, "| ---") {
			continue
		}
		for cell := range strings.SplitSeq(strings.Trim(strings.TrimSpace(line), "|"), "|") {
			if cell = strings.TrimSpace(cell); !strings.Contains(html.UnescapeString(page), ">"+cell+"<") {
				t.Errorf("the page lacks %q", cell)
			}
		}
	}
	page = regexp.MustCompile(`href="data:image/svg\+xml;base64,[A-Za-z0-9+/=]+"`).ReplaceAllString(page, "")
	page = strings.Replace(page, "<script>"+chart.SavePNG, "", 1)
	for _, bad := range []string{"src=", "href=", "@import", "<script", "url(", "NaN", "Inf", "a<b", "no data", "//"} {
		if strings.Contains(page, bad) {
			t.Errorf("the page has %q", bad)
		}
	}
	if n := strings.Count(page, "<svg"); n != len(figures) {
		t.Errorf("%d plots, want %d", n, len(figures))
	}
	dir := t.TempDir()
	if err := WriteFigures(dir, results); err != nil {
		t.Fatal(err)
	}
	for _, name := range figures {
		svg, err := os.ReadFile(filepath.Join(dir, name+".svg"))
		if err != nil {
			t.Error(err)
		} else if err := xml.Unmarshal(svg, new(struct{})); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) != len(figures) {
		t.Errorf("%v, %v, want %v", files, err, figures)
	}
}

// Marks stand where the numbers of the table put them.
func TestPlots(t *testing.T) {
	g := groupsOf(deep())
	if len(g) != 1 {
		t.Fatalf("%d groups, want one", len(g))
	}
	roof := g[0].roofline()
	lines := map[string][][2]float64{}
	for _, l := range roof.Lines {
		lines[l.Label] = l.Points
	}
	for _, r := range g[0].results {
		p := lines[r.Work.String()]
		if len(p) != 1 || p[0] != [2]float64{r.Cost.Ops() / float64(r.Cost.Bytes()), r.Ops() / 1e9} {
			t.Errorf("%s stands at %v", r.Work, p)
		}
	}
	for _, name := range []string{"30.0 GB/s", "900 int8 GOP/s", "230 f32 GOP/s"} {
		if len(lines[name]) < 2 {
			t.Errorf("no line %q in %v", name, lines)
		}
	}
	wide, plots := g[0].figures("")
	if len(wide) != 1 || strings.Count(wide[0].SVG, "<circle") != 3+3*3+2*2+3*2 {
		t.Errorf("%d rings in the plot of all repetitions", strings.Count(wide[0].SVG, "<circle"))
	}
	if n := strings.Count(plots[0].SVG, "<circle"); n != 3+2 {
		t.Errorf("%d rings against depth, want 5", n)
	}
	if n := strings.Count(plots[1].SVG, "<circle"); n != 4 {
		t.Errorf("%d rings against sequences, want 4", n)
	}
}
