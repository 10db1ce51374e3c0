package main

import (
	"fmt"
	"math"
	"strings"

	"ridge/kernel/_asm/dispatch"
)

// A kernel is the function being generated. Vector instructions go through
// its methods in inst.go, everything else is written as lines of Go assembly.
type kernel struct {
	name   string
	params map[string]string // parameter or "ret": its operand, like "dst+0(FP)"
	regs   int               // general registers given out so far
	vecs   int               // vector registers given out so far
	consts map[uint32]reg    // constants held in all lanes of vector registers
	packed map[uint32]lane   // constants held in one lane
	room   []lane            // lanes for more of these
}

// reg is a vector register, gp a general one.
type (
	reg int
	gp  int
)

// lane is one of the four 32-bit lanes of a vector register.
type lane struct {
	v reg
	i int
}

func (r gp) String() string { return fmt.Sprintf("R%d", int(r)) }

// output collects what is generated.
type output struct {
	files map[string]*file // by name, without "_arm64" and the extensions
	order []string
	*file                   // the one being written
	words map[string]uint32 // the instructions by their text
	ops   []dispatch.Op     // the operations that kernels have been started for
}

// file is a file of assembly and its declarations.
type file struct{ text, stubs strings.Builder }

var out = output{files: map[string]*file{}, words: map[string]uint32{}}

// begin starts a file.
func (o *output) begin(name string) {
	name += "_neon"
	o.file = &file{}
	o.files[name] = o.file
	o.order = append(o.order, name)
}

// begin starts a kernel. The parameters are like "dst, x *float32, n int",
// the result is "" or a type. Nothing is kept of pointers.
func begin(name, doc, params, result string, frame int) *kernel {
	out.ops = dispatch.Add(out.ops, "NEON", dispatch.Op{Name: name, Doc: doc, Params: params, Result: result})
	name += "NEON"
	k := &kernel{name: name, params: map[string]string{}, consts: map[uint32]reg{}, packed: map[uint32]lane{}}
	offset := 0
	place := func(name string, size int) {
		offset = (offset + size - 1) &^ (size - 1)
		k.params[name] = fmt.Sprintf("%s+%d(FP)", name, offset)
		offset += size
	}
	for _, group := range groups(params) {
		for _, n := range group.names {
			place(n, sizeOf(group.typ))
		}
	}
	if result != "" {
		offset = (offset + 7) &^ 7
		place("ret", sizeOf(result))
	}
	signature := strings.TrimSpace(fmt.Sprintf("func %s(%s) %s", name, params, result))
	fmt.Fprintf(&out.stubs, "\n// %s %s\n//\n//go:noescape\n%s\n", name, doc, signature)
	fmt.Fprintf(&out.text, "\n// %s\nTEXT ·%s(SB), NOSPLIT, $%d-%d\n", signature, name, frame, offset)
	return k
}

// group is some parameters of one type.
type group struct {
	names []string
	typ   string
}

func groups(params string) (list []group) {
	var g group
	for _, p := range strings.Split(params, ", ") {
		name, typ, last := strings.Cut(p, " ")
		g.names = append(g.names, name)
		if last {
			g.typ = typ
			list = append(list, g)
			g = group{}
		}
	}
	return list
}

func sizeOf(typ string) int {
	switch typ {
	case "float32", "uint32":
		return 4
	case "bool":
		return 1
	}
	return 8
}

// g writes a line of Go assembly.
func (k *kernel) g(text string, args ...any) {
	fmt.Fprintf(&out.text, "\t"+text+"\n", args...)
}

// label names a place of the kernel.
func (k *kernel) label(name string) { fmt.Fprintf(&out.text, "\n%s:\n", name) }

// end writes the return.
func (k *kernel) end() { k.g("RET") }

// gp gives out a general register. R16 to R18 and those from R27 on have
// other uses, R26 is for the moment.
func (k *kernel) gp() gp {
	r := gp(k.regs)
	if r >= 16 {
		r += 3
	}
	if r > 25 {
		panic(k.name + ": out of general registers")
	}
	k.regs++
	return r
}

// arg loads a pointer or an integer parameter.
func (k *kernel) arg(name string) gp {
	r := k.gp()
	k.g("MOVD %s, %s", k.params[name], r)
	return r
}

// vec gives out a vector register, vecN several.
func (k *kernel) vec() reg {
	if k.vecs > 31 {
		panic(k.name + ": out of vector registers")
	}
	k.vecs++
	return reg(k.vecs - 1)
}

func (k *kernel) vecN(n int) []reg {
	list := make([]reg, n)
	for i := range list {
		list[i] = k.vec()
	}
	return list
}

// scoped runs body and takes back the vector registers that it was given.
func (k *kernel) scoped(body func()) {
	n := k.vecs
	body()
	k.vecs = n
}

// scalar broadcasts a float32 parameter.
func (k *kernel) scalar(name string) reg {
	v := k.vec()
	k.g("FMOVS %s, F%d", k.params[name], v)
	k.dupLane(v, v, 0)
	return v
}

// holdBits loads constants into all lanes of registers, before the loop that
// uses them; constant returns such a register.
func (k *kernel) holdBits(vals ...uint32) {
	for _, b := range vals {
		if _, ok := k.consts[b]; ok {
			continue
		}
		v := k.vec()
		k.consts[b] = v
		if b == 0 {
			k.zero(v)
			continue
		}
		k.g("MOVW $0x%08x, R26", b)
		k.dupW(v, 26)
	}
}

func (k *kernel) constant(b uint32) reg {
	v, ok := k.consts[b]
	if !ok {
		panic(fmt.Sprintf("%s: constant %#x is not held", k.name, b))
	}
	return v
}

// hold and c are the same for floating-point constants.
func (k *kernel) hold(vals ...float32) {
	for _, v := range vals {
		k.holdBits(math.Float32bits(v))
	}
}

func (k *kernel) c(v float32) reg { return k.constant(math.Float32bits(v)) }

// pack holds constants in one lane each, for instructions that take them from
// there, and lane returns the place.
func (k *kernel) pack(vals ...float32) {
	for _, v := range vals {
		b := math.Float32bits(v)
		if _, ok := k.packed[b]; ok {
			continue
		}
		if len(k.room) == 0 {
			r := k.vec()
			k.room = []lane{{r, 0}, {r, 1}, {r, 2}, {r, 3}}
		}
		at := k.room[0]
		k.room = k.room[1:]
		k.packed[b] = at
		k.g("MOVW $0x%08x, R26", b)
		k.setLaneW(at.v, at.i, 26)
	}
}

func (k *kernel) lane(v float32) lane {
	at, ok := k.packed[math.Float32bits(v)]
	if !ok {
		panic(fmt.Sprintf("%s: constant %g is not packed", k.name, v))
	}
	return at
}

// holdBytes loads a byte into all bytes of a register.
func (k *kernel) holdBytes(b byte) reg {
	v := k.vec()
	k.moviBytes(v, b)
	return v
}
