package kernel

import (
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
	"unsafe"

	"ridge/kernel/internal/layout"
	"ridge/weights/tensor"
)

// TestLayoutStructs: the structs of this package lie in memory as package layout
// says, from which the assembly is generated.
func TestLayoutStructs(t *testing.T) {
	var u panelBlock
	var h attnHead
	for _, c := range []struct {
		name       string
		have, want uintptr
	}{
		{"panelBlock.m1", unsafe.Offsetof(u.m1), layout.PanelM1},
		{"panelBlock.s1", unsafe.Offsetof(u.s1), layout.PanelS1},
		{"panelBlock.m0", unsafe.Offsetof(u.m0), layout.PanelM0},
		{"panelBlock.s0", unsafe.Offsetof(u.s0), layout.PanelS0},
		{"panelBlock.q", unsafe.Offsetof(u.q), layout.PanelQ},
		{"panelBlock", unsafe.Sizeof(u), layout.PanelBytes},
		{"attnHead.max", unsafe.Offsetof(h.max), layout.HeadMax},
		{"attnHead.sum", unsafe.Offsetof(h.sum), layout.HeadSum},
		{"attnHead.alpha", unsafe.Offsetof(h.alpha), layout.HeadAlpha},
		{"attnHead.slope", unsafe.Offsetof(h.slope), layout.HeadSlope},
		{"attnHead.ramp", unsafe.Offsetof(h.ramp), layout.HeadRamp},
		{"attnHead.mask", unsafe.Offsetof(h.mask), layout.HeadMask},
		{"actTiny", uintptr(math.Float32bits(actTiny)), layout.ActTiny},
		{"actMagic", uintptr(math.Float32bits(0x1.8p23)), layout.ActMagic},
	} {
		if c.have != c.want {
			t.Errorf("%s is %#x, package layout has %#x", c.name, c.have, c.want)
		}
	}
}

// TestNativeBlocks: blocks in files have the sizes that packing takes them to have.
func TestNativeBlocks(t *testing.T) {
	for typ, size := range map[tensor.DType]int{
		tensor.Q8_0: bytesQ8_0, tensor.Q4_0: bytesQ4_0, tensor.IQ4_NL: bytesQ4_0, tensor.Q4_1: bytesQ4_1, tensor.Q5_0: bytesQ5_0,
		tensor.Q5_1: bytesQ5_1, tensor.MXFP4: bytesMXFP4, tensor.Q4_K: bytesQ4_K, tensor.Q5_K: bytesQ5_K, tensor.Q6_K: bytesQ6_K,
		tensor.Q3_K: bytesQ3_K, tensor.Q2_K: bytesQ2_K, tensor.IQ4_XS: bytesIQ4_XS, tensor.TQ1_0: bytesTQ1_0, tensor.TQ2_0: bytesTQ2_0,
	} {
		if size != typ.BlockBytes() {
			t.Errorf("%s: packing takes blocks of %d bytes, they have %d", typ, size, typ.BlockBytes())
		}
	}
}

// TestLayoutFormats: what lies in a header has room there, for every format, and
// each of a pair has a place of its own.
func TestLayoutFormats(t *testing.T) {
	for i := range layout.Formats {
		f := &layout.Formats[i]
		size := 1 // of a lane's scale, or minimum
		if f.Scales == layout.PerBlock || f.Scales == layout.Brain {
			size = 2
		}
		used := map[int]string{}
		take := func(what string, at int) {
			for k := range size * Lanes {
				if by, ok := used[at+k]; ok || at+k >= f.PairHead() {
					t.Fatalf("%s: %s is at byte %d, which is %s's, or not of the %d of the header", f.Name, what, at+k, by, f.PairHead())
				}
				used[at+k] = what
			}
		}
		for b := range 2 {
			for h := range 2 {
				if f.Scales == layout.Super || h == 1 && !f.Form.Halves() {
					continue
				}
				take(fmt.Sprintf("scale %d.%d", b, h), f.ScaleAt(b, h))
				if f.Form.Mins() && f.Scales != layout.Nibbles {
					take(fmt.Sprintf("minimum %d.%d", b, h), f.MinAt(b, h))
				}
			}
		}
		if f.PairAt(1) != f.PairAt(0)+f.BlockAt(1)+f.BlockBytes() || f.SuperBytes() != f.PairAt(f.Pairs) || f.SuperBytes()%64 != 0 {
			t.Errorf("%s: blocks do not follow each other: pairs at %d and %d, blocks at %d and %d, %d bytes", f.Name, f.PairAt(0), f.PairAt(1), f.BlockAt(0), f.BlockAt(1), f.SuperBytes())
		}
	}
}

// TestLayoutDocs: the table of docs/kernels.md has the sizes of all formats.
func TestLayoutDocs(t *testing.T) {
	text, err := os.ReadFile("../docs/kernels.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "\n| format | superblock | header |")
	table, _, _ = strings.Cut(table, "\n\n")
	byName := map[string]tensor.DType{}
	for typ := range packings {
		byName[typ.String()] = typ
	}
	for _, line := range strings.Split(table, "\n")[2:] {
		cell := strings.Split(line, "|")
		var sizes []string
		var f *layout.Format
		for _, name := range strings.Split(strings.TrimSpace(cell[1]), ", ") {
			typ, ok := byName[name]
			if !ok {
				if plainSize(typeNamed(name)) == 0 {
					t.Errorf("format %s: there is none", name)
				}
				continue
			}
			delete(byName, name)
			f = packings[typ].Format
			if size := fmt.Sprint(Lanes * typ.RowBytes(64*f.Pairs)); len(sizes) == 0 || sizes[0] != size {
				sizes = append(sizes, size)
			}
		}
		if f == nil {
			continue
		}
		have := strings.Join([]string{cell[2], cell[5], cell[6]}, "|")
		want := fmt.Sprintf(" %d | %d | %d (%s) ", 64*f.Pairs, f.Bits, f.SuperBytes(), strings.Join(sizes, ", "))
		if have != want {
			t.Errorf("format%s: the table has columns, vectors and bytes%s, package layout%s", cell[1], have, want)
		}
		if (strings.TrimSpace(cell[3]) == "–") != (f.Head() == 0) || (strings.TrimSpace(cell[4]) == "–") != (f.PairHead() == 0) {
			t.Errorf("format%s: the table has the headers%s and%s, package layout has %d and %d bytes", cell[1], cell[3], cell[4], f.Head(), f.PairHead())
		}
	}
	for name := range byName {
		t.Errorf("format %s is not in the table", name)
	}
}

// typeNamed returns the type of plain numbers with the given name.
func typeNamed(name string) tensor.DType {
	for _, typ := range packedTypes {
		if typ.String() == name {
			return typ
		}
	}
	return tensor.Q8_0
}
