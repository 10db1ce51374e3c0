// Package bf16 emits the instructions for bfloat16 and tile registers that
// neither the assembler nor avo knows, as bytes (Intel's manual, volume 2,
// "TDPBF16PS", "VDPBF16PS", "VCVTNE2PS2BF16" and their neighbours).
package bf16

import (
	"encoding/binary"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/ir"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// vex emits an instruction of the 0F38 map: pp is 0 for no prefix, 2 for F3, 3
// for F2.
func vex(op byte, pp, vvvv int, base, index reg.Physical, tail ...byte) {
	high := func(r reg.Physical) byte {
		if r == nil || r.PhysicalIndex() < 8 {
			return 1
		}
		return 0
	}
	emit(append([]byte{0xc4, 0x80 | high(index)<<6 | high(base)<<5 | 2, byte(^vvvv&15)<<3 | byte(pp), op}, tail...))
}

func emit(b []byte) {
	for ; len(b) >= 4; b = b[4:] {
		build.Instruction(&ir.Instruction{Opcode: "LONG", Operands: []operand.Op{operand.U32(binary.LittleEndian.Uint32(b))}})
	}
	for _, x := range b {
		build.Instruction(&ir.Instruction{Opcode: "BYTE", Operands: []operand.Op{operand.U8(x)}})
	}
}

// mem emits a load (pp 3) or a store (pp 2) of a tile whose rows lie stride
// bytes apart from base+disp on.
func mem(pp, tile int, base, stride reg.Physical, disp int) {
	sib := byte(stride.PhysicalIndex()&7)<<3 | byte(base.PhysicalIndex()&7)
	vex(0x4b, pp, 0, base, stride, append([]byte{0x84 | byte(tile)<<3, sib}, disp32(disp)...)...)
}

func disp32(n int) []byte { return binary.LittleEndian.AppendUint32(nil, uint32(n)) }

// Load loads a tile whose rows lie stride bytes apart from base+disp on.
func Load(tile int, base, stride reg.Physical, disp int) { mem(3, tile, base, stride, disp) }

// Store is the opposite of Load.
func Store(tile int, base, stride reg.Physical, disp int) { mem(2, tile, base, stride, disp) }

// Zero clears a tile.
func Zero(tile int) { vex(0x49, 3, 0, nil, nil, 0xc0|byte(tile)<<3) }

// Product adds the products of the bfloat16 pairs of x and y to the float32 sums
// of sum.
func Product(sum, x, y int) { vex(0x5c, 2, y, nil, nil, 0xc0|byte(sum)<<3|byte(x)) }

// Release ends the use of tiles.
func Release() { vex(0x49, 0, 0, nil, nil, 0xc0) }

// Config loads the shapes of tiles that cfg points to, which is neither RSP nor R12.
func Config(cfg reg.Register) {
	base := cfg.(reg.Physical)
	vex(0x49, 0, 0, base, nil, append([]byte{0x80 | byte(base.PhysicalIndex()&7)}, disp32(0)...)...)
}

// evex emits an instruction on three vectors of 64 bytes of the 0F38 map.
func evex(op byte, pp int, x, y, dst reg.VecPhysical) {
	d, n, m := byte(dst.PhysicalIndex()), byte(y.PhysicalIndex()), byte(x.PhysicalIndex())
	bit := func(b byte, from, to int) byte { return (b>>from&1 ^ 1) << to }
	emit([]byte{
		0x62, bit(d, 3, 7) | bit(m, 4, 6) | bit(m, 3, 5) | bit(d, 4, 4) | 2, (^n&15)<<3 | 4 | byte(pp),
		0x40 | bit(n, 4, 3), op, 0xc0 | d&7<<3 | m&7,
	})
}

// Round sets dst to the values of lo and then hi, rounded to bfloat16. Like all
// here the operands are in the order of Go's assembler.
func Round(lo, hi, dst reg.VecPhysical) { evex(0x72, 3, lo, hi, dst) }

// DotPairs adds the products of the bfloat16 pairs of x and y to the float32 sums
// of dst: of the second values of pairs, and then of the first ones.
func DotPairs(x, y, dst reg.VecPhysical) { evex(0x52, 2, x, y, dst) }
