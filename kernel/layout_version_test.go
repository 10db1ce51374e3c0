package kernel

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"testing"

	"ridge/internal/cpu"
)

// layoutHash is the hash of a packed sample of every format for each
// LayoutVersion there was; the last one is that of today.
var layoutHash = map[int]uint64{
	1: 0x68a45d08e0614c72,
	2: 0xe15b50d49eac11ce,
}

// A change of a layout is a change of LayoutVersion, on every tier: files with
// packed weights outlive the program that wrote them.
func TestLayoutVersion(t *testing.T) {
	for _, tier := range cpu.Tiers() {
		if tier == cpu.Ref {
			continue // packs nothing
		}
		restore := cpu.Set(tier)
		h := fnv.New64a()
		for i, typ := range packedTypes {
			for _, shape := range [][2]int{{16, 512}, {21, 768}, {3, 256}} {
				p := packTest(t, randomMat(rand.New(rand.NewPCG(uint64(i), 7)), typ, shape[0], shape[1]))
				fmt.Fprintln(h, typ, p.Rows, p.Cols, p.Groups, p.GroupBytes)
				h.Write(p.Data)
			}
		}
		restore()
		if got := h.Sum64(); got != layoutHash[LayoutVersion] {
			t.Errorf("%v: packed samples have the hash %#016x, those of version %d %#016x: raise LayoutVersion and enter the new hash",
				tier, got, LayoutVersion, layoutHash[LayoutVersion])
		}
	}
	if len(packedTypes) < len(packings)+3 {
		t.Errorf("%d formats were packed of %d", len(packedTypes), len(packings)+3)
	}
	if len(layoutHash) != LayoutVersion {
		t.Errorf("%d hashes for %d versions", len(layoutHash), LayoutVersion)
	}
}
