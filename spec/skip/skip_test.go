package skip

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"testing"

	"ridge/internal/testdata"
	"ridge/model"
	"ridge/spec"
	"ridge/text/tokenizer"
	"ridge/weights/tensor"
)

func open(t testing.TB, path string) *model.Model {
	t.Helper()
	m, err := model.Open(path, model.Options{KV: tensor.F16, Context: 512, Workers: 1, KVBytes: 64 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

// calibration and heldOut are texts of the kind that small models were trained on.
const (
	calibration = "Question: Why do leaves fall in autumn? Answer: Trees lose their leaves to save water and energy in the cold months. The days become shorter, and the leaves make less sugar from the light of the sun. So the tree takes back what it can use, and lets the leaves go."
	heldOut     = "Question: How is bread made? Answer: Flour, water, salt and yeast are mixed and kneaded to a dough. The yeast makes gas from the sugar of the flour, and the dough rises. Then it is baked in a hot oven until the crust is brown and hard."
)

func encode(m *model.Model, text string) []int32 {
	return m.Tokenizer().Encode(nil, text, tokenizer.EncodeOptions{})
}

// Nothing left out, the drafter is the model: its guesses are what the model goes on with,
// and keys and values are as before.
func TestDrafts(t *testing.T) {
	m := open(t, testdata.Tiny)
	n := len(m.Net().Layers)
	for name, parts := range map[string][]uint8{"nothing": make([]uint8, n), "some": append(make([]uint8, n-1), both)} {
		d, err := New(m, parts)
		if err != nil {
			t.Fatal(err)
		}
		text := encode(m, heldOut)
		kv := m.Pool().NewSeq()
		if err := m.Forward(&model.Step{Runs: []model.Run{{Seq: kv, Tokens: text[:len(text)-1]}}}); err != nil {
			t.Fatal(err)
		}
		q := d.Drafter().(spec.Guest)
		if got := q.Draft(nil, text, 4); len(got) != 0 {
			t.Errorf("%s: %d guesses without keys and values", name, len(got))
		}
		var twice [2][]spec.Guess
		for i := range twice {
			q.Visit(kv)
			for range 5 {
				twice[i] = q.Draft(twice[i], text, 1)
			}
			if q.Visit(nil); kv.Len() != len(text)-1 {
				t.Fatalf("%s: %d tokens afterwards, want %d", name, kv.Len(), len(text)-1)
			}
		}
		if len(twice[0]) != 5 || !slices.Equal(twice[0], twice[1]) || q.Cost() <= 0 || q.Lag(text) != 1 {
			t.Fatalf("%s: %v and %v", name, twice[0], twice[1])
		}
		run := model.Run{Seq: kv, Tokens: text[len(text)-1:], Outputs: 1}
		for i, g := range twice[0] {
			if err := m.Forward(&model.Step{Runs: []model.Run{run}}); err != nil {
				t.Fatal(err)
			}
			best := int32(0)
			for id, x := range m.Logits(0) {
				if x > m.Logits(0)[best] {
					best = int32(id)
				}
			}
			if name == "nothing" && best != g.Token {
				t.Fatalf("guess %d: %d, want %d", i, g.Token, best)
			}
			run.Tokens = []int32{g.Token}
		}
		m.Pool().Free(kv)
		q.Close()
	}
}

// Parts that a search leaves out are missed less than as many drawn at random, on a text
// that it has not seen.
func TestSearchBeatsRandom(t *testing.T) {
	searched(t, testdata.Tiny, 0.25, false)
}

func TestSearchBeatsRandomOfRealModel(t *testing.T) {
	if testing.Short() {
		t.Skip("skipped: short")
	}
	searched(t, testdata.Model(t, "smollm2"), 0.15, true)
}

func searched(t *testing.T, path string, part float64, strict bool) {
	m := open(t, path)
	s, err := NewSearcher(m, [][]int32{encode(m, calibration)}, 32)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	size := int(2 * part * float64(len(m.Net().Layers)))
	found, err := s.Search(size, 8, 1)
	if err != nil {
		t.Fatal(err)
	}
	best := found[len(found)-1]
	held, err := NewSearcher(m, [][]int32{encode(m, heldOut)}, 48)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	got, err := held.Look(best.Parts)
	if err != nil {
		t.Fatal(err)
	}
	most, sum := 0.0, 0.0
	const draws = 5
	for seed := range uint64(draws) {
		f, err := held.Look(held.Random(size, seed))
		if err != nil {
			t.Fatal(err)
		}
		most, sum = max(most, f.Share), sum+f.Share
	}
	t.Logf("%d of %d parts left out, %.2f of the bytes read: %.3f of tokens agree on the text of the search, %.3f on another; at random %.3f on average, %.3f at most; speed expected %.2f",
		size, 2*len(m.Net().Layers), best.Cost, best.Share, got.Share, sum/draws, most, got.Speed)
	if best.Left() != size || got.Share <= sum/draws || strict && got.Share < most {
		t.Errorf("%d parts: %.3f, at random %.3f on average, %.3f at most", best.Left(), got.Share, sum/draws, most)
	}
	none, err := held.Look(make([]uint8, len(m.Net().Layers)))
	if err != nil || none.Share != 1 || none.Cost != 1 {
		t.Errorf("nothing left out: %+v, %v", none, err)
	}
}

// What was found is stored, and read for the same model alone.
func TestFile(t *testing.T) {
	m := open(t, testdata.Tiny)
	parts := append(make([]uint8, len(m.Net().Layers)-1), mixer)
	var b bytes.Buffer
	if err := Write(&b, m, &Finding{Parts: parts, Share: 0.5}); err != nil {
		t.Fatal(err)
	}
	stored := b.String()
	got, err := Read(strings.NewReader(stored), m)
	if err != nil || !slices.Equal(got, parts) {
		t.Fatalf("%v, %v, want %v", got, err, parts)
	}
	for change, want := range map[string]string{
		strings.Replace(stored, m.Fingerprint()[:8], "01234567", 1): "skip: fingerprint: expected that of the model",
		strings.Replace(stored, "1]", "4]", 1):                      "expected 0 to 3, found 4",
		stored[:20]:                                                 "expected a file that ridge spec search has written",
	} {
		if _, err := Read(strings.NewReader(change), m); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if _, err := New(m, parts[1:]); err == nil {
		t.Error("too few layers were taken")
	}
	for _, first := range []int{0, len(parts)} {
		if _, err := Exit(m, first); err == nil {
			t.Errorf("an exit at layer %d was taken", first)
		}
	}
}

// Speeds are those of the formula at both ends.
func TestSpeed(t *testing.T) {
	if got, want := Speed(1, 0), 9/(1+8*Row); math.Abs(got-want) > 1e-12 {
		t.Errorf("%v, want %v", got, want)
	}
	if got, want := Speed(0, 0.5), 1/(0.5+1+Row); math.Abs(got-want) > 1e-12 {
		t.Errorf("%v, want %v", got, want)
	}
}
