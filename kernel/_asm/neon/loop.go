package main

import (
	"fmt"
	"strings"
)

// A mapping is an operation on rows, element by element.
type mapping struct {
	name, doc string
	dst       string   // the pointer that is written
	in        []string // the pointers that are read, dst among them or not
	scalars   []string // float32 parameters
	hold      func(k *kernel)
	body      func(k *kernel, in, scalars []reg) reg // may destroy in
}

// emit generates m: four vectors at a time, then one, then single elements,
// each in a lane of its own vector.
func (m mapping) emit() {
	pointers := []string{m.dst}
	for _, in := range m.in {
		if in != m.dst {
			pointers = append(pointers, in)
		}
	}
	params := strings.Join(pointers, ", ") + " *float32, n int"
	if len(m.scalars) > 0 {
		params += ", " + strings.Join(m.scalars, ", ") + " float32"
	}
	k := begin(m.name, m.doc, params, "", 0)
	at := map[string]gp{}
	var moved []pointer
	for _, p := range pointers {
		at[p] = k.arg(p)
		moved = append(moved, pointer{at[p], 4})
	}
	n := k.arg("n")
	scalars := k.scalarsOf(m.scalars)
	if m.hold != nil {
		m.hold(k)
	}
	k.loop(n, moved, []int{16, 4, 1}, func(count int) {
		size := min(16, 4*count)
		for off := 0; off < 4*count; off += 16 {
			k.scoped(func() {
				in := k.vecN(len(m.in))
				for i, p := range m.in {
					k.load(size, in[i], at[p], off)
				}
				k.store(size, m.body(k, in, scalars), at[m.dst], off)
			})
		}
	})
	k.end()
}

func (k *kernel) scalarsOf(names []string) []reg {
	var list []reg
	for _, s := range names {
		list = append(list, k.scalar(s))
	}
	return list
}

// pointer is a register that a loop moves by size bytes for each element.
type pointer struct {
	r    gp
	size int
}

// loop emits body for as many elements at a time as steps says, the largest
// first, the last being 1 unless n is always a multiple of it. n is lost.
func (k *kernel) loop(n gp, moved []pointer, steps []int, body func(count int)) {
	for i, count := range steps {
		if i > 0 {
			k.label(fmt.Sprintf("under%d", steps[i-1]))
			k.g("ADD $%d, %s", steps[i-1], n)
		}
		under := fmt.Sprintf("under%d", count)
		k.g("SUBS $%d, %s", count, n)
		k.g("BLT %s", under)
		k.label(fmt.Sprintf("by%d", count))
		k.scoped(func() { body(count) })
		for _, p := range moved {
			k.g("ADD $%d, %s", count*p.size, p.r)
		}
		k.g("SUBS $%d, %s", count, n)
		k.g("BGE by%d", count)
	}
	k.label(fmt.Sprintf("under%d", steps[len(steps)-1]))
}

// A reduction combines the elements of rows to one value. Element i goes to
// lane i%16 of accumulator i/16%4; the accumulators are then combined as
// (0+1)+(2+3), and the lanes by halving: the order of kernel/_asm/vec.
type reduction struct {
	name, doc string
	in        []string
	scalars   []string
	max       bool                         // the maximum, starting from -Inf, rather than the sum
	pad       func(k *kernel, s []reg) reg // what stands for elements behind the end
	stored    bool                         // body changes the elements
	cleared   bool                         // body makes something of pads: it must call clear
	hold      func(k *kernel)
	// body adds a vector of elements to acc. What is to be stored it leaves in
	// in[0]. clear zeroes the lanes of v behind the end; it uses spare.
	body func(k *kernel, acc reg, in, scalars []reg, clear func(v, spare reg))
}

const negInf = 0xff800000

// tailBytes is the room for the elements that are left over from whole runs of
// 64, filled up with pads.
const tailBytes = 4 * 64

func (r reduction) emit() {
	params := strings.Join(r.in, ", ") + " *float32, n int"
	if len(r.scalars) > 0 {
		params += ", " + strings.Join(r.scalars, ", ") + " float32"
	}
	k := begin(r.name, r.doc, params, "float32", (len(r.in)+btoi(r.cleared))*tailBytes)
	var at []gp
	for _, p := range r.in {
		at = append(at, k.arg(p))
	}
	n := k.arg("n")
	scalars := k.scalarsOf(r.scalars)
	if r.hold != nil {
		r.hold(k)
	}
	pad := r.pad(k, scalars)
	acc := k.vecN(16)
	for _, v := range acc {
		if r.max {
			k.mov(v, pad)
		} else {
			k.zero(v)
		}
	}
	run := func(base []gp, clear func(i int) func(v, spare reg)) {
		for i, v := range acc {
			k.scoped(func() {
				in := k.vecN(len(base))
				for j, p := range base {
					k.loadQ(in[j], p, 16*i)
				}
				r.body(k, v, in, scalars, clear(i))
				if r.stored {
					k.storeQ(in[0], base[0], 16*i)
				}
			})
		}
	}
	k.g("SUBS $64, %s", n)
	k.g("BLT tail")
	k.label("loop")
	run(at, func(int) func(v, spare reg) { return func(reg, reg) {} })
	for _, p := range at {
		k.g("ADD $256, %s", p)
	}
	k.g("SUBS $64, %s", n)
	k.g("BGE loop")
	k.label("tail")
	k.g("ADDS $64, %s", n)
	k.g("BEQ done")
	base := make([]gp, len(at))
	for j, p := range at {
		base[j] = k.tail(j, pad)
		k.copyWords(fmt.Sprintf("copy%d", j), p, base[j], n)
	}
	var mask gp
	if r.cleared { // ones for the elements, zeros for the pads
		mask = k.tail(len(at), k.zeroed())
		k.fillWords("mask", mask, n)
	}
	run(base, func(i int) func(v, spare reg) {
		return func(v, spare reg) {
			k.loadQ(spare, mask, 16*i)
			k.and(v, v, spare)
		}
	})
	if r.stored {
		k.copyWords("back", base[0], at[0], n)
	}
	k.label("done")
	k.combine(acc, r.max)
	k.g("FMOVS F%d, %s", acc[0], k.params["ret"])
	k.end()
}

// tail fills a part of the frame with v and returns its address.
func (k *kernel) tail(part int, v reg) gp {
	base := k.gp()
	k.g("MOVD $tail%d-%d(SP), %s", part, tailBytes*(part+1), base)
	for i := range 16 {
		k.storeQ(v, base, 16*i)
	}
	return base
}

// zeroed returns a register of zeros, until the next one is given out.
func (k *kernel) zeroed() (v reg) {
	k.scoped(func() { v = k.vec() })
	k.zero(v)
	return v
}

// fillWords sets n > 0 words of 32 bits to ones.
func (k *kernel) fillWords(label string, to, n gp) {
	regs := k.regs
	dst, left, word := k.gp(), k.gp(), k.gp()
	k.regs = regs
	k.g("MOVD %s, %s", to, dst)
	k.g("MOVD %s, %s", n, left)
	k.g("MOVW $-1, %s", word)
	k.label(label)
	k.g("MOVW.P %s, 4(%s)", word, dst)
	k.g("SUBS $1, %s", left)
	k.g("BNE %s", label)
}

// copyWords copies n > 0 words of 32 bits.
func (k *kernel) copyWords(label string, from, to, n gp) {
	regs := k.regs
	src, dst, left, word := k.gp(), k.gp(), k.gp(), k.gp()
	k.regs = regs
	k.g("MOVD %s, %s", from, src)
	k.g("MOVD %s, %s", to, dst)
	k.g("MOVD %s, %s", n, left)
	k.label(label)
	k.g("MOVWU.P 4(%s), %s", src, word)
	k.g("MOVW.P %s, 4(%s)", word, dst)
	k.g("SUBS $1, %s", left)
	k.g("BNE %s", label)
}

// combine leaves the value of four accumulators of 16 lanes in lane 0 of the
// first register.
func (k *kernel) combine(acc []reg, max bool) {
	for q := range 4 {
		k.merge(acc[q], acc[4+q], max)
		k.merge(acc[8+q], acc[12+q], max)
		k.merge(acc[q], acc[8+q], max)
	}
	k.horizontal(acc[:4], max)
}

// horizontal combines 16 lanes by halving.
func (k *kernel) horizontal(v []reg, max bool) {
	k.merge(v[0], v[2], max)
	k.merge(v[1], v[3], max)
	k.merge(v[0], v[1], max)
	k.ext(v[1], v[0], v[0], 8)
	k.merge(v[0], v[1], max)
	k.dupLane(v[1], v[0], 1)
	k.merge(v[0], v[1], max)
}

// merge adds b to a, or sets a to the larger one, b where they are equal.
func (k *kernel) merge(a, b reg, max bool) {
	if !max {
		k.fadd(a, a, b)
		return
	}
	k.scoped(func() {
		m := k.vec()
		k.fcmgt(m, a, b)
		k.bsl(m, a, b)
		k.mov(a, m)
	})
}
