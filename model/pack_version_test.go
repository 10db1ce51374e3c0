package model

import (
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ridge/internal/cpu"
	"ridge/kernel"
	"ridge/weights/tensor"
)

// packHash is a hash of what is packed of the tiny models for each packVersion
// there was; the last one is that of today.
var packHash = map[int]uint64{
	1: 0x1897064c4ed03e71,
	2: 0x1897064c4ed03e71, // an output matrix beside a shared embedding is packed
}

// A change of what is packed, or of how it is changed before, is a change of
// packVersion.
func TestPackVersion(t *testing.T) {
	if cpu.Current() == cpu.Ref {
		t.Skip("skipped: the kernels of cpu.Ref pack nothing")
	}
	// Tiny models that came later pack nothing that these do not.
	list, err := os.ReadFile(filepath.Join("testdata", "packed.txt"))
	if err != nil {
		t.Fatal(err)
	}
	h := fnv.New64a()
	for name := range strings.FieldsSeq(string(list)) {
		f := filepath.Join(tinyModels, name)
		for _, path := range []string{f, filepath.Join(f, filepath.Base(f)+".gguf")} {
			if !exists(path) {
				continue
			}
			m, err := Open(path, Options{KV: tensor.F32, Workers: 1, Context: 8})
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range m.w.packed {
				fmt.Fprintln(h, p.name, p.Type, p.Rows, p.Cols)
				h.Write(p.Data)
			}
			m.Close()
		}
	}
	if got := h.Sum64(); got != packHash[packVersion] && kernel.LayoutVersion == 1 {
		t.Errorf("what is packed has the hash %#016x, that of version %d %#016x: raise packVersion, or LayoutVersion in package kernel if its test fails too, and enter the new hash",
			got, packVersion, packHash[packVersion])
	}
}
