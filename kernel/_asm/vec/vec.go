// Package vec lets a generator describe a vector kernel once and emit it for
// both instruction sets, AVX2 with FMA and AVX-512, such that both compute the
// same bits: the same operations in the same order, lane i of a vector of 16
// being lane i%8 of one of two vectors of 8.
package vec

import (
	"fmt"
	"math"
	"strings"

	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"ridge/kernel/_asm/dispatch"
	"ridge/kernel/_asm/parts"
)

// ISA is an instruction set.
type ISA int

// The instruction sets.
const (
	AVX2 ISA = iota
	AVX512
)

func (a ISA) String() string { return [...]string{"AVX2", "AVX512"}[a] }

// Lanes returns the number of float32 values in a vector.
func (a ISA) Lanes() int { return [...]int{8, 16}[a] }

// Vec returns a fresh vector register.
func (a ISA) Vec() reg.VecVirtual {
	if a == AVX512 {
		return ZMM()
	}
	return YMM()
}

// Func is the kernel being generated.
type Func struct {
	ISA
	name string
	regs map[uint32]reg.VecVirtual // constants held in registers
	mask operand.Op                // mask of the tail being generated, nil elsewhere
}

var consts = map[uint32]operand.Mem{}

// Ops are the operations that kernels have been started for.
var Ops []dispatch.Op

// WriteTiers writes the files of all parts, and name_tier_amd64.go, which picks the
// kernels of a tier. What the build constraint others has, has none: that is told by
// name_tier_other.go.
func WriteTiers(name string, list []parts.Part, others string) {
	parts.Generate(list)
	for _, p := range list {
		p.Emit() // for Ops
	}
	parts.WriteGo(name+"_tier_amd64.go", name, dispatch.Source(*parts.Package, "", []string{"AVX512", "AVX2"}, Ops))
	parts.WriteGo(name+"_tier_other.go", name, dispatch.Source(*parts.Package, others, nil, Ops))
}

// Begin starts the kernel name with the given parameters and results, like
// "(x *float32, n int) float32". Nothing is kept of pointers.
func Begin(a ISA, name, doc, signature string) *Func {
	params, result, _ := strings.Cut(strings.TrimPrefix(signature, "("), ")")
	Ops = dispatch.Add(Ops, a.String(), dispatch.Op{Name: name, Doc: doc, Params: params, Result: strings.TrimSpace(result)})
	name += a.String()
	TEXT(name, NOSPLIT, "func"+signature)
	Pragma("noescape")
	Doc(name + " " + doc)
	return &Func{ISA: a, name: name, regs: map[uint32]reg.VecVirtual{}}
}

// End emits the return.
func (f *Func) End() {
	VZEROUPPER()
	RET()
}

// Label names a place in the kernel, GoTo refers to it.
func (f *Func) Label(name string) { Label(f.name + "_" + name) }

// Ref returns a reference to the label name.
func (f *Func) Ref(name string) operand.LabelRef { return operand.LabelRef(f.name + "_" + name) }

// Ptr loads the pointer or integer parameter name.
func (f *Func) Ptr(name string) reg.GPVirtual { return Load(Param(name), GP64()).(reg.GPVirtual) }

// Scalar broadcasts the float32 parameter name.
func (f *Func) Scalar(name string) reg.VecVirtual {
	v := f.Vec()
	addr, err := Param(name).Resolve()
	if err != nil {
		panic(err)
	}
	VBROADCASTSS(addr.Addr, v)
	return v
}

// Constant returns eight copies of the 32 bits in read-only memory.
func Constant(bits uint32) operand.Mem {
	m, ok := consts[bits]
	if !ok {
		m = GLOBL(fmt.Sprintf("k%08x", bits), RODATA|NOPTR)
		for i := range 8 {
			DATA(4*i, operand.U32(bits))
		}
		consts[bits] = m
	}
	return m
}

// Hold loads constants into registers, before the loop that uses them.
func (f *Func) Hold(vals ...float32) {
	for _, v := range vals {
		f.HoldBits(math.Float32bits(v))
	}
}

// HoldBits is Hold for constants that are not floating-point numbers.
func (f *Func) HoldBits(vals ...uint32) {
	for _, b := range vals {
		if _, ok := f.regs[b]; ok {
			continue
		}
		r := f.Vec()
		VBROADCASTSS(Constant(b), r)
		f.regs[b] = r
	}
}

// HoldWide is Hold for constants that AVX2, short of registers, takes from
// memory instead.
func (f *Func) HoldWide(vals ...float32) {
	if f.ISA == AVX512 {
		f.Hold(vals...)
	}
}

// C returns the constant v as the operand of an instruction that can read
// memory: a register if it is held in one.
func (f *Func) C(v float32) operand.Op { return f.Bits(math.Float32bits(v)) }

// Bits is C for a constant that is not a floating-point number.
func (f *Func) Bits(b uint32) operand.Op {
	if r, ok := f.regs[b]; ok {
		return r
	}
	if f.ISA == AVX512 {
		panic(fmt.Sprintf("%s: constant %#x is not held", f.name, b))
	}
	return Constant(b)
}

// Zero clears v.
func Zero(v operand.Op) {
	if operand.IsZMM(v) {
		VPXORD(v, v, v)
		return
	}
	VXORPS(v, v, v)
}

// Load reads a vector, or the lanes of the tail with zeros in the rest.
func (f *Func) Load(m operand.Mem) reg.VecVirtual {
	v := f.Vec()
	switch {
	case f.mask == nil:
		VMOVUPS(m, v)
	case f.ISA == AVX512:
		VMOVUPS_Z(m, f.mask, v)
	default:
		VMASKMOVPS(m, f.mask, v)
	}
	return v
}

// Store writes a vector, or the lanes of the tail.
func (f *Func) Store(v reg.VecVirtual, m operand.Mem) {
	switch {
	case f.mask == nil:
		VMOVUPS(v, m)
	case f.ISA == AVX512:
		VMOVUPS(v, f.mask, m)
	default:
		VMASKMOVPS(v, f.mask, m)
	}
}

// Clear sets the lanes of v outside the tail to zero.
func (f *Func) Clear(v reg.VecVirtual) {
	switch {
	case f.mask == nil:
	case f.ISA == AVX512:
		VMOVAPS_Z(v, f.mask, v)
	default:
		VANDPS(f.mask, v, v)
	}
}

// Fill sets the lanes of v outside the tail to those of u.
func (f *Func) Fill(v, u reg.VecVirtual) {
	switch {
	case f.mask == nil:
	case f.ISA == AVX512:
		VBLENDMPS(v, u, f.mask, v)
	default:
		VBLENDVPS(f.mask, v, u, v)
	}
}

// Tail starts code for the vector of which lanes [0, n-skip) are in the row,
// n in 1..64 being what is left of it. EndTail ends it.
func (f *Func) Tail(n reg.GPVirtual, skip int) {
	if f.ISA == AVX512 {
		t, k := GP64(), K()
		MOVQ(operand.I32(-1), t)
		BZHIQ(n, t, t)
		if skip > 0 {
			SHRQ(operand.Imm(uint64(skip)), t)
		}
		KMOVW(t.As32(), k)
		f.mask = k
		return
	}
	t, m := GP64(), YMM()
	LEAQ(tailTable(), t)
	neg := GP64()
	MOVQ(n, neg)
	NEGQ(neg)
	VMOVUPS(operand.Mem{Base: t, Index: neg, Scale: 4, Disp: 256 + 4*skip}, m)
	f.mask = m
}

// EndTail ends the code begun by Tail.
func (f *Func) EndTail() { f.mask = nil }

var tails *operand.Mem

// tailTable returns 64 words of ones followed by 64 words of zeros.
func tailTable() operand.Mem {
	if tails == nil {
		m := GLOBL("tails", RODATA|NOPTR)
		for i := range 128 {
			v := uint32(0)
			if i < 64 {
				v = math.MaxUint32
			}
			DATA(4*i, operand.U32(v))
		}
		tails = &m
	}
	return *tails
}

// Mask returns the mask of the tail being generated, nil elsewhere.
func (f *Func) Mask() operand.Op { return f.mask }

// TailMask returns the AVX2 mask of the first n lanes.
func (f *Func) TailMask(n reg.GPVirtual) reg.VecVirtual {
	f.Tail(n, 0)
	m := f.mask.(reg.VecVirtual)
	f.EndTail()
	return m
}
