// Command gemm generates the matrix kernels of package kernel: products of
// packed weights with rows of activations, the unpacking of weights to panels,
// and the quantizer of activations. kernel/packed_formats.go defines the
// layouts and packed_generic.go the arithmetic.
package main

import (
	"fmt"
	"strings"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"ridge/kernel/_asm/parts"
	"ridge/kernel/internal/layout"
)

func main() {
	parts.Generate(all())
	writeTable()
}

// all returns a part for each format and tier, and one for each of what belongs
// to no format.
func all() []parts.Part {
	var list []parts.Part
	add := func(name string, emit func()) { list = append(list, parts.Part{Name: name, Emit: emit}) }
	for _, f := range layout.Formats {
		file := "gemm_" + strings.ToLower(f.Name)
		add(file+"_avx512", func() {
			for mr := 1; mr <= maxRows512; mr++ {
				mul512(f, mr)
			}
			unpack512(f)
			for _, mr := range firstRows {
				first512(f, mr)
			}
		})
		add(file+"_avx2", func() {
			for _, mr := range rows2 {
				mulAVX2(f, mr)
			}
		})
	}
	for _, p := range plains {
		for _, wide := range []bool{true, false} {
			tier := map[bool]string{true: "_avx512", false: "_avx2"}[wide]
			add("gemm_"+strings.ToLower(p.name)+tier, func() {
				for _, mr := range plainRows[wide] {
					mulPlain(p, mr, wide)
				}
			})
		}
	}
	add("gemm_brain_avx512", func() {
		roundRow()
		for mr := 1; mr <= maxBrain; mr++ {
			mulBrain(mr)
		}
		pairProbe()
	})
	add("gemm_brain_amx", func() {
		for rows := 1; rows <= 2; rows++ {
			for groups := 1; groups <= 2; groups++ {
				mulBrainTiles(rows, groups)
			}
		}
		tileProbe()
	})
	add("gemm_panels_avx512", func() {
		for _, f := range layout.Forms {
			for nv := 1; nv <= 2; nv++ {
				for mr := 1; mr <= maxTile; mr++ {
					panel512(f, mr, nv)
				}
			}
		}
	})
	add("quantize_avx512", quantize512)
	add("quantize_avx2", func() {
		quantizeAVX2()
		subtractQuantizedAVX2()
	})
	add("probe_avx512", probes512)
	add("probe_avx2", probesAVX2)
	add("vendor", cpuVendor)
	return list
}

// maxRows512 is the largest number of activation rows of the kernels that read
// packed weights.
const maxRows512 = 8

// maxTile is the largest number of rows of a tile of the panel kernels.
const maxTile = 7

// writeTable writes the tables that find a kernel by format and size.
func writeTable() {
	var b strings.Builder
	b.WriteString("package kernel\n\nimport (\n\"ridge/kernel/internal/layout\"\n\"ridge/weights/tensor\"\n)\n\n")
	b.WriteString("var mul512 = [numTypes][]mulFunc{\n")
	for _, f := range layout.Formats {
		row := "nil"
		for mr := 1; mr <= maxRows512; mr++ {
			row += ", " + mulName(f, mr)
		}
		writeRow(&b, f, row)
	}
	b.WriteString("}\n\nvar mul2 = [numTypes][]mulFunc{\n")
	for _, f := range layout.Formats {
		row := ""
		for _, mr := range rows2 {
			row += fmt.Sprintf("%d: %s, ", mr, mulName2(f, mr))
		}
		writeRow(&b, f, row)
	}
	for _, wide := range []bool{true, false} {
		fmt.Fprintf(&b, "}\n\nvar %s = [numTypes][]plainFunc{\n", map[bool]string{true: "plain512", false: "plain2"}[wide])
		for _, p := range plains {
			fmt.Fprintf(&b, "\ttensor.%s: {", p.name)
			for _, mr := range plainRows[wide] {
				fmt.Fprintf(&b, "%d: %s, ", mr, plainName(p, mr, wide))
			}
			b.WriteString("},\n")
		}
	}
	b.WriteString("}\n\nvar unpack512 = [numTypes]unpackFunc{\n")
	for _, f := range layout.Formats {
		for _, name := range f.Names() {
			fmt.Fprintf(&b, "\ttensor.%s: %s,\n", name, unpackName(f))
		}
	}
	b.WriteString("}\n\nvar first512 = [numTypes][]firstFunc{\n")
	for _, f := range layout.Formats {
		row := ""
		for _, mr := range firstRows {
			row += fmt.Sprintf("%d: %s, ", mr, firstName(f, mr))
		}
		writeRow(&b, f, row)
	}
	fmt.Fprintf(&b, "}\n\nvar panel512 = [...][3][%d]panelFunc{\n", maxTile+1)
	for _, f := range layout.Forms {
		fmt.Fprintf(&b, "\tlayout.%v: {", f)
		for nv := 1; nv <= 2; nv++ {
			fmt.Fprintf(&b, "%d: {nil", nv)
			for mr := 1; mr <= maxTile; mr++ {
				fmt.Fprintf(&b, ", %s", panelName(f, mr, nv))
			}
			b.WriteString("}, ")
		}
		b.WriteString("},\n")
	}
	b.WriteString("}\n\nvar brain512 = []brainFunc{nil")
	for mr := 1; mr <= maxBrain; mr++ {
		b.WriteString(", " + brainName(mr))
	}
	b.WriteString("}\n\nvar brainTiles = [3][3]brainTileFunc{")
	for rows := 1; rows <= 2; rows++ {
		fmt.Fprintf(&b, "%d: {nil, %s, %s},", rows, brainTileName(rows, 1), brainTileName(rows, 2))
	}
	b.WriteString("}\n")
	parts.WriteGo("gemm_table_amd64.go", "gemm", b.String())
}

func writeRow(b *strings.Builder, f format, row string) {
	for _, name := range f.Names() {
		fmt.Fprintf(b, "\ttensor.%s: {%s},\n", name, row)
	}
}

// rows addresses rows of memory that lie a stride apart: four rows to a base
// register.
type rows struct {
	base           []reg.GPVirtual
	stride, triple reg.GPVirtual
}

// newRows allocates the registers for n rows and sets up the stride.
func newRows(n int, stride reg.GPVirtual) *rows {
	r := &rows{stride: stride}
	for i := 0; i < n; i += 4 {
		r.base = append(r.base, GP64())
	}
	if n > 3 {
		r.triple = GP64()
		LEAQ(Mem{Base: stride, Index: stride, Scale: 2}, r.triple)
	}
	return r
}

// set points row 0 at p.
func (r *rows) set(p Op) {
	MOVQ(p, r.base[0])
	for i := 1; i < len(r.base); i++ {
		LEAQ(Mem{Base: r.base[i-1], Index: r.stride, Scale: 4}, r.base[i])
	}
}

func (r *rows) advance(n int) {
	for _, b := range r.base {
		ADDQ(U32(uint32(n)), b)
	}
}

func (r *rows) at(row, disp int) Mem {
	m := Mem{Base: r.base[row/4], Disp: disp}
	switch row % 4 {
	case 1:
		m.Index, m.Scale = r.stride, 1
	case 2:
		m.Index, m.Scale = r.stride, 2
	case 3:
		m.Index, m.Scale = r.triple, 1
	}
	return m
}

// vectors hands out vector registers by number.
type vectors struct{ next int }

func (v *vectors) zmm() reg.VecPhysical {
	if v.next > 31 {
		panic("out of vector registers")
	}
	v.next++
	return zmms[v.next-1]
}

func (v *vectors) zmmN(n int) (z []reg.VecPhysical) {
	for range n {
		z = append(z, v.zmm())
	}
	return z
}

var zmms = []reg.VecPhysical{
	reg.Z0, reg.Z1, reg.Z2, reg.Z3, reg.Z4, reg.Z5, reg.Z6, reg.Z7,
	reg.Z8, reg.Z9, reg.Z10, reg.Z11, reg.Z12, reg.Z13, reg.Z14, reg.Z15,
	reg.Z16, reg.Z17, reg.Z18, reg.Z19, reg.Z20, reg.Z21, reg.Z22, reg.Z23,
	reg.Z24, reg.Z25, reg.Z26, reg.Z27, reg.Z28, reg.Z29, reg.Z30, reg.Z31,
}

// broadcast32 sets all lanes of z.
func broadcast32(bits uint32, z reg.VecPhysical) {
	r := GP32()
	MOVL(U32(bits), r)
	VPBROADCASTD(r, z)
}

func clearZ(z ...reg.VecPhysical) {
	for _, r := range z {
		VPXORD(r, r, r)
	}
}

// function starts a function that the Go scheduler can stop at its entry: it
// has a stack check, which the assembler leaves out for small leaf frames.
func function(name, signature, doc string) {
	TEXT(name, 0, signature)
	Pragma("noescape")
	Doc(doc)
	AllocLocal(256)
}
