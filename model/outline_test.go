package model

import (
	"math"
	"testing"
)

// The outline of every tiny model says what Open finds.
func TestOutline(t *testing.T) {
	for _, dir := range tinyCases(t) {
		g := readGolden(t, dir)
		for form, path := range g.files() {
			o, err := ReadOutline(path)
			if err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			m, err := Open(path, DefaultOptions())
			if err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			bytes := 0.0
			for r := range o.Net.Regions() {
				for _, x := range r.Mats {
					if x.W.Data != nil {
						t.Fatalf("%s: the outline has weights", path)
					}
					bytes += r.Active * float64(x.W.Size())
				}
			}
			c := m.Config()
			if int64(math.Round(bytes)) != m.WeightBytes() || o.Parameters != m.Parameters() || o.Config.Layers != c.Layers || o.Config.Vocab != c.Vocab {
				t.Errorf("%s (%s): outline has %.0f bytes and %d weights, the model %d and %d", dir, form, bytes, o.Parameters, m.WeightBytes(), m.Parameters())
			}
			if o.VectorSize < 0 || o.VectorSize%4 != 0 || o.VectorSize > 4*o.Parameters {
				t.Errorf("%s (%s): %d bytes of vectors", dir, form, o.VectorSize)
			}
			m.Close()
		}
	}
	if _, err := ReadOutline(t.TempDir()); err == nil {
		t.Error("an empty directory has an outline")
	}
}
