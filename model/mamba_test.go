package model

import (
	"path/filepath"
	"testing"

	"ridge/weights/tensor"
)

// A model whose layers all have states takes a prompt with the memory that it asks
// for by itself, with room for the state of a prefix beside the sequence's.
func TestStatesHaveRoom(t *testing.T) {
	for _, name := range []string{"mamba", "mamba2", "jamba", "lfm2"} {
		m := openTiny(t, filepath.Join(tinyModels, name), 0, Options{KV: tensor.F32, Workers: 1})
		pool := m.Pool()
		seqs := []int{pool.PagesInSteps(nil, 1, 0), 2 * pool.PagesFor(nil, 1)}
		for _, need := range seqs {
			if have := pool.Available(); have < need {
				t.Errorf("%s: %d pages, %d are needed", name, have, need)
			}
		}
	}
}
