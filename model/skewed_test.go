package model

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"testing"

	"ridge/weights/tensor"
)

// A trained router has preferences, which random ones have not: in each kind of
// text the loads are those that transformers counts, the busiest expert has nearly
// twice its share or more, and kinds of text differ in the experts that they use. Few
// rows touch few experts then: a batch of one text reads fewer of them than even
// choices would.
func TestSkewedLoads(t *testing.T) {
	const dir = "testdata/skewed"
	var kinds map[string]struct {
		IDs    []int32
		Loss   float64
		Chosen [][]int64
	}
	b, err := os.ReadFile(filepath.Join(dir, "golden.json"))
	if err == nil {
		err = json.Unmarshal(b, &kinds)
	}
	if err != nil || len(kinds) != 4 {
		t.Fatal(len(kinds), err)
	}
	rows := map[string][][]int64{}
	for kind, g := range kinds {
		m := openTiny(t, dir, 256, Options{KV: tensor.F32, Workers: 2})
		logits := compute(t, m, g.IDs, len(g.IDs))
		loss := 0.0
		for i, id := range g.IDs[1:] {
			loss -= logProbability(logits[i*128:][:128], id) / float64(len(g.IDs)-1)
		}
		if d := math.Abs(loss - g.Loss); d > 0.002 {
			t.Errorf("%s: loss %.5f, transformers' is %.5f", kind, loss, g.Loss)
		}
		for i, l := range m.ExpertLoads() {
			got := m.net.Layers[l.Layer].mixture().Load().Rows
			rows[kind] = append(rows[kind], got)
			var most, off int64
			for e, want := range g.Chosen[i] {
				most = max(most, want)
				off += max(got[e]-want, want-got[e])
			}
			if off > 2 { // one row may lie on the border
				t.Errorf("%s: layer %d: chosen %d, by transformers %d", kind, i, got, g.Chosen[i])
			}
			if l.Imbalance() < 1.7 || l.Chosen != int64(2*len(g.IDs)) || l.Busiest+2 < most {
				t.Errorf("%s: %+v: imbalance %.2f", kind, l, l.Imbalance())
			}
			t.Logf("%s, layer %d: busiest %.2f times its share", kind, i, l.Imbalance())
		}
		checkFewRead(t, m, kind, g.IDs)
	}
	for _, pair := range [][2]string{{"prose", "code"}, {"prose", "plays"}, {"sums", "plays"}} {
		moved := int64(0)
		for i := range rows["prose"] {
			for e, n := range rows[pair[0]][i] {
				moved += max(n-rows[pair[1]][i][e], 0)
			}
		}
		part := float64(moved) / float64(len(rows["prose"])*400)
		t.Logf("%s and %s: %.0f%% of the choices are others", pair[0], pair[1], 100*part)
		if part < 0.1 { // chance alone gives 5%
			t.Errorf("%s and %s choose alike: %.3f", pair[0], pair[1], part)
		}
	}
}

// checkFewRead compares the experts that steps of 8 rows read with what even
// choices would: 8·(1 - (3/4)^8) = 7.2 of 8.
func checkFewRead(t *testing.T, m *Model, kind string, ids []int32) {
	before := m.ExpertLoads()
	compute(t, m, ids, 8)
	for i, l := range m.ExpertLoads() {
		read := float64(l.Read-before[i].Read) / float64((len(ids)+7)/8)
		t.Logf("%s, layer %d: 8 rows read %.2f of 8 experts", kind, i, read)
		if read > 7 {
			t.Errorf("%s: layer %d: 8 rows read %.2f experts, even choices would read 7.2", kind, i, read)
		}
	}
}

// logProbability returns the logarithm of a token's probability.
func logProbability(logits []float32, id int32) float64 {
	most, sum := math.Inf(-1), 0.0
	for _, x := range logits {
		most = max(most, float64(x))
	}
	for _, x := range logits {
		sum += math.Exp(float64(x) - most)
	}
	return float64(logits[id]) - most - math.Log(sum)
}
