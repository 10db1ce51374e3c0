package main

import "fmt"

// The vector instructions. Go's assembler has few of them, so all are written
// as words, with their text in the Arm notation behind; inst_test.go compares
// the two with what LLVM's assembler makes of them.

// word writes an instruction.
func (k *kernel) word(w uint32, text string, args ...any) {
	text = fmt.Sprintf(text, args...)
	out.words[text] = w
	fmt.Fprintf(&out.text, "\tWORD $0x%08x // %s\n", w, text)
}

// three is an instruction of a destination and two sources, of one kind of
// lanes.
func (k *kernel) three(op uint32, name, lanes string, d, n, m reg) {
	k.word(op|uint32(m)<<16|uint32(n)<<5|uint32(d), "%s v%d.%s, v%d.%s, v%d.%s", name, d, lanes, n, lanes, m, lanes)
}

// Arithmetic on four float32.
func (k *kernel) fadd(d, n, m reg)  { k.three(0x4e20d400, "fadd", "4s", d, n, m) }
func (k *kernel) fsub(d, n, m reg)  { k.three(0x4ea0d400, "fsub", "4s", d, n, m) }
func (k *kernel) fmul(d, n, m reg)  { k.three(0x6e20dc00, "fmul", "4s", d, n, m) }
func (k *kernel) fdiv(d, n, m reg)  { k.three(0x6e20fc00, "fdiv", "4s", d, n, m) }
func (k *kernel) fmla(d, n, m reg)  { k.three(0x4e20cc00, "fmla", "4s", d, n, m) } // d += n·m
func (k *kernel) fmin(d, n, m reg)  { k.three(0x4ea0f400, "fmin", "4s", d, n, m) }
func (k *kernel) fmax(d, n, m reg)  { k.three(0x4e20f400, "fmax", "4s", d, n, m) }
func (k *kernel) fcmgt(d, n, m reg) { k.three(0x6ea0e400, "fcmgt", "4s", d, n, m) }
func (k *kernel) fcmge(d, n, m reg) { k.three(0x6e20e400, "fcmge", "4s", d, n, m) }
func (k *kernel) fcmeq(d, n, m reg) { k.three(0x4e20e400, "fcmeq", "4s", d, n, m) }

// Arithmetic on integers.
func (k *kernel) add4(d, n, m reg)  { k.three(0x4ea08400, "add", "4s", d, n, m) }
func (k *kernel) sub4(d, n, m reg)  { k.three(0x6ea08400, "sub", "4s", d, n, m) }
func (k *kernel) umax4(d, n, m reg) { k.three(0x6ea06400, "umax", "4s", d, n, m) }
func (k *kernel) cmtst(d, n, m reg) { k.three(0x4ea08c00, "cmtst", "4s", d, n, m) }
func (k *kernel) sub16(d, n, m reg) { k.three(0x6e208400, "sub", "16b", d, n, m) }

// Bits. bsl sets d to n where d has ones, to m elsewhere; bit sets d to n
// where m has ones.
func (k *kernel) and(d, n, m reg) { k.three(0x4e201c00, "and", "16b", d, n, m) }
func (k *kernel) orr(d, n, m reg) { k.three(0x4ea01c00, "orr", "16b", d, n, m) }
func (k *kernel) eor(d, n, m reg) { k.three(0x6e201c00, "eor", "16b", d, n, m) }
func (k *kernel) bic(d, n, m reg) { k.three(0x4e601c00, "bic", "16b", d, n, m) }
func (k *kernel) bsl(d, n, m reg) { k.three(0x6e601c00, "bsl", "16b", d, n, m) }
func (k *kernel) bit(d, n, m reg) { k.three(0x6ea01c00, "bit", "16b", d, n, m) }

func (k *kernel) mov(d, n reg) {
	k.word(0x4ea01c00|uint32(n)<<16|uint32(n)<<5|uint32(d), "mov v%d.16b, v%d.16b", d, n)
}

// two is an instruction of a destination and a source.
func (k *kernel) two(op uint32, name, dl, nl string, d, n reg) {
	k.word(op|uint32(n)<<5|uint32(d), "%s v%d.%s, v%d.%s", name, d, dl, n, nl)
}

func (k *kernel) frintn(d, n reg) { k.two(0x4e218800, "frintn", "4s", "4s", d, n) }
func (k *kernel) fcvtns(d, n reg) { k.two(0x4e21a800, "fcvtns", "4s", "4s", d, n) }
func (k *kernel) scvtf(d, n reg)  { k.two(0x4e21d800, "scvtf", "4s", "4s", d, n) }
func (k *kernel) ucvtf(d, n reg)  { k.two(0x6e21d800, "ucvtf", "4s", "4s", d, n) }
func (k *kernel) fneg(d, n reg)   { k.two(0x6ea0f800, "fneg", "4s", "4s", d, n) }
func (k *kernel) fabs(d, n reg)   { k.two(0x4ea0f800, "fabs", "4s", "4s", d, n) }
func (k *kernel) rev64(d, n reg)  { k.two(0x4ea00800, "rev64", "4s", "4s", d, n) }

// Conversions of widths; the high forms read or write the upper half of the
// narrow register.
func (k *kernel) fcvtl(d, n reg)  { k.two(0x0e217800, "fcvtl", "4s", "4h", d, n) }
func (k *kernel) fcvtl2(d, n reg) { k.two(0x4e217800, "fcvtl2", "4s", "8h", d, n) }
func (k *kernel) fcvtn(d, n reg)  { k.two(0x0e216800, "fcvtn", "4h", "4s", d, n) }
func (k *kernel) xtn4(d, n reg)   { k.two(0x0e612800, "xtn", "4h", "4s", d, n) }
func (k *kernel) xtn4h(d, n reg)  { k.two(0x4e612800, "xtn2", "8h", "4s", d, n) }
func (k *kernel) xtn8(d, n reg)   { k.two(0x0e212800, "xtn", "8b", "8h", d, n) }
func (k *kernel) xtn8h(d, n reg)  { k.two(0x4e212800, "xtn2", "16b", "8h", d, n) }

func (k *kernel) shll(d, n reg) {
	k.word(0x2e613800|uint32(n)<<5|uint32(d), "shll v%d.4s, v%d.4h, #16", d, n)
}

func (k *kernel) shll2(d, n reg) {
	k.word(0x6e613800|uint32(n)<<5|uint32(d), "shll2 v%d.4s, v%d.8h, #16", d, n)
}

// Lengthening of bytes to 16 and of 16 to 32 bits, signed and unsigned.
func (k *kernel) sxtl8(d, n reg)  { k.two(0x0f08a400, "sxtl", "8h", "8b", d, n) }
func (k *kernel) sxtl8h(d, n reg) { k.two(0x4f08a400, "sxtl2", "8h", "16b", d, n) }
func (k *kernel) sxtl4(d, n reg)  { k.two(0x0f10a400, "sxtl", "4s", "4h", d, n) }
func (k *kernel) sxtl4h(d, n reg) { k.two(0x4f10a400, "sxtl2", "4s", "8h", d, n) }
func (k *kernel) uxtl8(d, n reg)  { k.two(0x2f08a400, "uxtl", "8h", "8b", d, n) }
func (k *kernel) uxtl4(d, n reg)  { k.two(0x2f10a400, "uxtl", "4s", "4h", d, n) }

// shift is a shift by a constant; code is what the instruction has for it.
func (k *kernel) shift(op uint32, name, lanes string, d, n reg, by, code int) {
	k.word(op|uint32(code)<<16|uint32(n)<<5|uint32(d), "%s v%d.%s, v%d.%s, #%d", name, d, lanes, n, lanes, by)
}

func (k *kernel) shl4(d, n reg, by int)   { k.shift(0x4f005400, "shl", "4s", d, n, by, 32+by) }
func (k *kernel) sshr4(d, n reg, by int)  { k.shift(0x4f000400, "sshr", "4s", d, n, by, 64-by) }
func (k *kernel) ushr16(d, n reg, by int) { k.shift(0x6f000400, "ushr", "16b", d, n, by, 16-by) }

// sli16 sets every byte of d to that of n shifted left, with d's bits below.
func (k *kernel) sli16(d, n reg, by int) { k.shift(0x6f005400, "sli", "16b", d, n, by, 8+by) }

// Permutations.
func (k *kernel) dupLane(d, n reg, lane int) {
	k.word(0x4e000400|uint32(lane<<3|4)<<16|uint32(n)<<5|uint32(d), "dup v%d.4s, v%d.s[%d]", d, n, lane)
}

func (k *kernel) dupW(d reg, r gp) {
	k.word(0x4e040c00|uint32(r)<<5|uint32(d), "dup v%d.4s, w%d", d, int(r))
}

func (k *kernel) ext(d, n, m reg, by int) {
	k.word(0x6e000000|uint32(m)<<16|uint32(by)<<11|uint32(n)<<5|uint32(d), "ext v%d.16b, v%d.16b, v%d.16b, #%d", d, n, m, by)
}

func (k *kernel) zip1(d, n, m reg) { k.three(0x4e803800, "zip1", "4s", d, n, m) }

func (k *kernel) tbl(d, table, n reg) {
	k.word(0x4e000000|uint32(n)<<16|uint32(table)<<5|uint32(d), "tbl v%d.16b, { v%d.16b }, v%d.16b", d, table, n)
}

// Across lanes.
func (k *kernel) umaxv(d, n reg) {
	k.word(0x6eb0a800|uint32(n)<<5|uint32(d), "umaxv s%d, v%d.4s", d, n)
}
func (k *kernel) addv(d, n reg) { k.word(0x4eb1b800|uint32(n)<<5|uint32(d), "addv s%d, v%d.4s", d, n) }

// toW copies a lane to a general register.
func (k *kernel) toW(r gp, n reg, lane int) {
	k.word(0x0e003c00|uint32(lane<<3|4)<<16|uint32(n)<<5|uint32(r), "mov w%d, v%d.s[%d]", int(r), n, lane)
}

// setLaneW copies a general register to a lane.
func (k *kernel) setLaneW(d reg, lane int, r gp) {
	k.word(0x4e001c00|uint32(lane<<3|4)<<16|uint32(r)<<5|uint32(d), "mov v%d.s[%d], w%d", d, lane, int(r))
}

// setUpper copies the lower half of n to the upper half of d.
func (k *kernel) setUpper(d, n reg) {
	k.word(0x6e180400|uint32(n)<<5|uint32(d), "mov v%d.d[1], v%d.d[0]", d, n)
}

// Constants.
func (k *kernel) zero(d reg) { k.word(0x6f00e400|uint32(d), "movi v%d.2d, #0000000000000000", d) }

func (k *kernel) moviBytes(d reg, b byte) {
	k.word(0x4f00e400|uint32(b>>5)<<16|uint32(b&31)<<5|uint32(d), "movi v%d.16b, #%d", d, b)
}

// indexed returns the bits of a lane of 32 bits as an operand.
func indexed(m reg, lane int) uint32 {
	return uint32(m)<<16 | uint32(lane&1)<<21 | uint32(lane>>1)<<11
}

// fmlaLane adds n times one lane of m, fmulLane is the product alone.
func (k *kernel) fmlaLane(d, n, m reg, lane int) {
	k.word(0x4f801000|indexed(m, lane)|uint32(n)<<5|uint32(d), "fmla v%d.4s, v%d.4s, v%d.s[%d]", d, n, m, lane)
}

func (k *kernel) fmulLane(d, n, m reg, lane int) {
	k.word(0x4f809000|indexed(m, lane)|uint32(n)<<5|uint32(d), "fmul v%d.4s, v%d.4s, v%d.s[%d]", d, n, m, lane)
}

// fmlsLane subtracts it.
func (k *kernel) fmlsLane(d, n, m reg, lane int) {
	k.word(0x4f805000|indexed(m, lane)|uint32(n)<<5|uint32(d), "fmls v%d.4s, v%d.4s, v%d.s[%d]", d, n, m, lane)
}

// sdot adds to each lane of d the products of the four signed bytes of the
// same lane of n with those of one lane of m.
func (k *kernel) sdot(d, n, m reg, lane int) {
	k.word(0x4f80e000|indexed(m, lane)|uint32(n)<<5|uint32(d), "sdot v%d.4s, v%d.16b, v%d.4b[%d]", d, n, m, lane)
}

// mem is a load or a store of 1, 2, 4, 8 or 16 bytes at an offset that is a
// multiple of that.
func (k *kernel) mem(name string, size int, v reg, base gp, off int) {
	op := map[int]uint32{1: 0x3d000000, 2: 0x7d000000, 4: 0xbd000000, 8: 0xfd000000, 16: 0x3d800000}[size]
	if name == "ldr" {
		op += 0x00400000
	}
	if off < 0 || off%size != 0 || off/size > 4095 {
		panic(fmt.Sprintf("%s: offset %d of %d bytes", k.name, off, size))
	}
	at := fmt.Sprintf("[x%d, #%d]", int(base), off)
	if off == 0 {
		at = fmt.Sprintf("[x%d]", int(base))
	}
	letter := map[int]string{1: "b", 2: "h", 4: "s", 8: "d", 16: "q"}[size]
	k.word(op|uint32(off/size)<<10|uint32(base)<<5|uint32(v), "%s %s%d, %s", name, letter, v, at)
}

func (k *kernel) load(size int, v reg, base gp, off int)  { k.mem("ldr", size, v, base, off) }
func (k *kernel) store(size int, v reg, base gp, off int) { k.mem("str", size, v, base, off) }
func (k *kernel) loadQ(v reg, base gp, off int)           { k.load(16, v, base, off) }
func (k *kernel) storeQ(v reg, base gp, off int)          { k.store(16, v, base, off) }

// loadNext reads 32 bits into all lanes and moves base behind them.
func (k *kernel) loadNext(v reg, base gp) {
	k.word(0x4ddfc800|uint32(base)<<5|uint32(v), "ld1r { v%d.4s }, [x%d], #4", v, int(base))
}
