package vec

import (
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Sixteen addresses up to 16 rows that start at base, stride bytes apart. The
// bases, one for four rows each, move on with what they point at.
func Sixteen(base, stride reg.GPVirtual) (at func(i int) operand.Mem, bases []reg.GPVirtual) {
	triple := GP64()
	LEAQ(operand.Mem{Base: stride, Index: stride, Scale: 2}, triple)
	bases = []reg.GPVirtual{base}
	for i := range 3 {
		b := GP64()
		LEAQ(operand.Mem{Base: bases[i], Index: stride, Scale: 4}, b)
		bases = append(bases, b)
	}
	return func(i int) operand.Mem {
		m := operand.Mem{Base: bases[i/4]}
		switch i % 4 {
		case 1, 2:
			m.Index, m.Scale = stride, uint8(i%4)
		case 3:
			m.Index, m.Scale = triple, 1
		}
		return m
	}, bases
}
