package main

// transpose generates the transposition of 16 rows of n elements, stride bytes
// apart, to n rows of 16; n is a positive multiple of 8. Eight columns at a time,
// the rows are laid end to end in registers. Zipping the first half of the
// registers with the second moves the top bit of each element's place to the
// bottom; four times that, and the bits of the row are below those of the
// column.
func transpose(name string, size int) {
	k := begin(name, "transposes 16 rows of n elements, stride bytes apart, to n rows of 16; n is a positive multiple of 8.",
		"dst, src *byte, stride, n int", "", 0)
	dst, src, stride, n, row := k.arg("dst"), k.arg("src"), k.arg("stride"), k.arg("n"), k.gp()
	from, to := k.vecN(8*size), k.vecN(8*size)
	zip := func(d, a, b reg, high bool) {
		op, text := uint32(0x4e003800), "zip1"
		if high {
			op, text = 0x4e007800, "zip2"
		}
		if size == 1 {
			k.three(op, text, "16b", d, a, b)
		} else {
			k.three(op|1<<22, text, "8h", d, a, b)
		}
	}
	k.label("columns")
	k.g("MOVD %s, %s", src, row)
	for i := range 16 {
		switch v := from[i*size/2]; {
		case size == 2:
			k.loadQ(v, row, 0)
		case i%2 == 0:
			k.load(8, v, row, 0)
		default:
			k.load(8, to[0], row, 0)
			k.setUpper(v, to[0])
		}
		k.g("ADD %s, %s", stride, row)
	}
	for range 4 {
		for i := range 4 * size {
			zip(to[2*i], from[i], from[i+4*size], false)
			zip(to[2*i+1], from[i], from[i+4*size], true)
		}
		from, to = to, from
	}
	for i, v := range from {
		k.storeQ(v, dst, 16*i)
	}
	k.g("ADD $%d, %s", 8*size, src)
	k.g("ADD $%d, %s", 128*size, dst)
	k.g("SUBS $8, %s", n)
	k.g("BNE columns")
	k.end()
}
