package badfiles

import (
	"encoding/binary"
	"fmt"
	"strings"
)

// raw is a GGUF file under construction.
type raw []byte

func (r raw) u8(v uint8) raw   { return append(r, v) }
func (r raw) u16(v uint16) raw { return binary.LittleEndian.AppendUint16(r, v) }
func (r raw) u32(v uint32) raw { return binary.LittleEndian.AppendUint32(r, v) }
func (r raw) u64(v uint64) raw { return binary.LittleEndian.AppendUint64(r, v) }
func (r raw) str(s string) raw { return append(r.u64(uint64(len(s))), s...) }

// pad fills up to a multiple of n, then adds extra zeros.
func (r raw) pad(n, extra int) raw {
	for len(r)%n != 0 {
		r = append(r, 0)
	}
	return append(r, make([]byte, extra)...)
}

// Type ids of metadata values and tensors.
const (
	vUint16, vUint32, vInt32, vBool, vString, vArray, vUint64 = 2, 4, 5, 7, 8, 9, 10
	tF32, tQ4K                                                = 0, 12
)

func header(version uint32, tensors, entries uint64) raw {
	return raw("GGUF").u32(version).u64(tensors).u64(entries)
}

// key starts a metadata entry.
func (r raw) key(name string, typ uint32) raw { return r.str(name).u32(typ) }

// tensor adds a directory entry.
func (r raw) tensor(name string, typ uint32, offset uint64, dims ...uint64) raw {
	r = r.str(name).u32(uint32(len(dims)))
	for _, d := range dims {
		r = r.u64(d)
	}
	return r.u32(typ).u64(offset)
}

// meta is a file of one metadata entry without tensors; entry ends it.
func meta(name string, typ uint32) raw { return header(3, 0, 1).key(name, typ) }

// small is a file in order: two tensors, of 32 and 16 bytes.
func small() raw {
	return header(3, 2, 2).
		key("general.architecture", vString).str("llama").
		key("llama.block_count", vUint32).u32(1).
		tensor("a.weight", tF32, 0, 8).
		tensor("b.weight", tF32, 32, 2, 2).
		pad(32, 48)
}

func ggufCases() []Case {
	var cases []Case
	add := func(name string, b raw, want string) {
		cases = append(cases, one(GGUF, "gguf-"+name, "model.gguf", b, want))
	}
	addHeaders(add)
	addTruncated(add)
	addMetadata(add)
	addArrays(add)
	addTensors(add)
	addLayouts(add)
	return cases
}

type adder func(name string, b raw, want string)

func addHeaders(add adder) {
	add("empty", nil, `magic: expected "GGUF", found an empty file`)
	add("text", raw("This is not a model."), `magic: expected "GGUF", found "This"`)
	add("control-bytes", raw("\x00\n\x1b[31m"), `magic: expected "GGUF", found "\x00\n\x1b["`)
	add("old-magic", raw("tjgg\x03\x00\x00\x00").pad(64, 0), `magic: expected "GGUF", found "tjgg"`)
	add("lfs-pointer", raw("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 98362432\n"),
		`magic: expected "GGUF", found a Git LFS pointer, not the file it stands for`)
	add("web-page", raw("\n<!DOCTYPE html><html><title>404</title>"), `magic: expected "GGUF", found a web page`)
	add("version-0", header(0, 0, 0), "version: expected 2 or 3, little-endian, found 0")
	add("version-1", header(1, 0, 0), "version: expected 2 or 3, little-endian, found 1, an old layout: convert the model again")
	add("version-4", header(4, 0, 0), "version: expected 2 or 3, little-endian, found 4")
	add("big-endian", raw("GGUF\x00\x00\x00\x03\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x01").pad(64, 0),
		"version: expected 2 or 3, little-endian, found a big-endian file of version 3")
	add("tensor-count", header(3, 1<<40, 0).pad(100, 0), "tensor count: expected at most 3 in the 84 bytes left, found 1099511627776")
	add("tensor-count-max", header(3, 1<<64-1, 0).pad(100, 0), "tensor count: expected at most 3 in the 84 bytes left, found 18446744073709551615")
	add("metadata-count", header(3, 0, 1<<40).pad(100, 0), "metadata count: expected at most 5 in the 76 bytes left, found 1099511627776")
	add("metadata-count-one-more", header(3, 0, 2).key("a", vUint32).u32(1).pad(4, 0),
		"metadata count: expected at most 1 in the 20 bytes left, found 2")
	add("metadata-count-of-tensor", small()[:24].u64(0), "tensor count: expected at most 0 in the 16 bytes left, found 2")
}

func addTruncated(add adder) {
	full := small()
	for _, c := range []struct {
		at   int
		want string
	}{
		{3, `magic: expected "GGUF", found "GGU"`},
		{6, "version: expected 4 bytes, found 2 before the end of the file"},
		{12, "tensor count: expected 8 bytes, found 4 before the end of the file"},
		{20, "tensor count: expected at most 0 in the 4 bytes left, found 2"},
		{60, "tensor count: expected at most 1 in the 44 bytes left, found 2"},
		{73, "metadata 1: key length: expected 8 bytes, found 4 before the end of the file"},
		{90, "metadata 1: key length: expected at most 13 in the 13 bytes left, found 17"},
		{96, `metadata "llama.block_count": type: expected 4 bytes, found 2 before the end of the file`},
		{100, `metadata "llama.block_count": expected 4 bytes, found 2 before the end of the file`},
		{108, "tensor 0: name length: expected 8 bytes, found 6 before the end of the file"},
		{116, "tensor 0: name length: expected at most 6 in the 6 bytes left, found 8"},
		{120, `tensor "a.weight": number of dimensions: expected 4 bytes, found 2 before the end of the file`},
		{126, `tensor "a.weight": dimensions: expected 8 bytes, found 4 before the end of the file`},
		{132, `tensor "a.weight": type: expected 4 bytes, found 2 before the end of the file`},
		{136, `tensor "a.weight": offset: expected 8 bytes, found 2 before the end of the file`},
		{144, "tensor 1: name length: expected 8 bytes, found 2 before the end of the file"},
		{188, `tensor "b.weight": offset: expected 8 bytes, found 6 before the end of the file`},
		{191, "tensor data: expected it to start at byte 192, found the end of the file at 191"},
		{200, `tensor "a.weight": data: expected 32 bytes at offset 0, found a data section of 8 bytes`},
		{230, `tensor "b.weight": data: expected 16 bytes at offset 32, found a data section of 38 bytes`},
		{len(full) - 1, `tensor "b.weight": data: expected 16 bytes at offset 32, found a data section of 47 bytes`},
	} {
		add(fmt.Sprintf("truncated-at-%d", c.at), full[:c.at:c.at], c.want)
	}
}

func addMetadata(add adder) {
	add("key-length", header(3, 0, 1).u64(1<<62).pad(64, 0),
		"metadata 0: key length: expected at most 32 in the 32 bytes left, found 4611686018427387904")
	add("key-empty", header(3, 0, 1).str("").u32(vUint32).u32(7), "metadata 0: key length: expected 1 to 65535, found 0")
	add("key-long", header(3, 0, 1).key(strings.Repeat("k", 65536), vUint32).u32(7),
		"metadata 0: key length: expected 1 to 65535, found 65536")
	add("key-twice", header(3, 0, 2).key("a", vUint32).u32(1).key("a", vUint32).u32(2),
		`metadata "a": expected each key once, found it as entry 0 and entry 1`)
	add("key-control-bytes", header(3, 0, 1).key("a\nb\x1b[31m", 13).u32(0),
		`metadata "a\nb\x1b[31m": type: expected a value type from 0 to 12, found 13`)
	add("value-type", meta("a", 13).u32(0), `metadata "a": type: expected a value type from 0 to 12, found 13`)
	add("value-type-max", meta("a", 1<<32-1).u32(0), `metadata "a": type: expected a value type from 0 to 12, found 4294967295`)
	add("value-missing", meta("ab", vUint64), `metadata "ab": expected 8 bytes, found 0 before the end of the file`)
	add("value-short", meta("abc", vUint64).u32(7), `metadata "abc": expected 8 bytes, found 4 before the end of the file`)
	add("string-length", meta("a", vString).u64(1<<63).pad(64, 0),
		`metadata "a": length: expected at most 19 in the 19 bytes left, found 9223372036854775808`)
	add("bool", meta("ab", vBool).u8(2), `metadata "ab": expected 0 or 1 for a bool, found 2`)
	add("alignment-0", meta("general.alignment", vUint32).u32(0),
		`metadata "general.alignment": expected a power of two from 8 to 16777216, found 0`)
	add("alignment-4", meta("general.alignment", vUint32).u32(4),
		`metadata "general.alignment": expected a power of two from 8 to 16777216, found 4`)
	add("alignment-24", meta("general.alignment", vUint32).u32(24),
		`metadata "general.alignment": expected a power of two from 8 to 16777216, found 24`)
	add("alignment-huge", meta("general.alignment", vUint32).u32(1<<31),
		`metadata "general.alignment": expected a power of two from 8 to 16777216, found 2147483648`)
	add("alignment-type", meta("general.alignment", vUint64).u64(32),
		`metadata "general.alignment": expected a uint32, found uint64 32`)
	add("alignment-string", meta("general.alignment", vString).str("32"),
		`metadata "general.alignment": expected a uint32, found string "32"`)
}

func addArrays(add adder) {
	add("array-element-type", meta("a", vArray).u32(99).u64(1).pad(64, 0),
		`metadata "a": element type: expected a value type from 0 to 12, found 99`)
	add("array-length", meta("a", vArray).u32(vInt32).u64(1<<61).pad(80, 0),
		`metadata "a": array length: expected at most 7 in the 31 bytes left, found 2305843009213693952`)
	add("array-of-strings-length", meta("tokenizer.ggml.tokens", vArray).u32(vString).u64(262144).pad(100, 0),
		`metadata "tokenizer.ggml.tokens": array length: expected at most 3 in the 31 bytes left, found 262144`)
	add("array-string-length", meta("tokens", vArray).u32(vString).u64(2).str("a").u64(1<<40).pad(100, 0),
		`metadata "tokens": string 1 length: expected at most 29 in the 29 bytes left, found 1099511627776`)
	add("array-string-missing", meta("tokens", vArray).u32(vString).u64(2).str("abcdefgh"),
		`metadata "tokens": string 1 length: expected 8 bytes, found 0 before the end of the file`)
	add("array-bool", meta("a", vArray).u32(vBool).u64(3).u8(0).u8(1).u8(255), `metadata "a": expected 0 or 1 for a bool, found 255`)
	add("nested-length", meta("a", vArray).u32(vArray).u64(1<<50).pad(100, 0),
		`metadata "a": array length: expected at most 4 in the 51 bytes left, found 1125899906842624`)
	add("nested-inner-length", meta("a", vArray).u32(vArray).u64(2).u32(vInt32).u64(1<<40).pad(100, 0),
		`metadata "a": array length: expected at most 9 in the 39 bytes left, found 1099511627776`)
	deep := meta("a", vArray)
	for range 2000 {
		deep = deep.u32(vArray).u64(1)
	}
	add("nested-deep", deep.u32(vUint32).u64(0), `metadata "a": expected arrays nested at most 8 deep, found more`)
}

func addTensors(add adder) {
	dir := func(n uint64) raw { return header(3, n, 0) }
	add("name-length", dir(1).u64(1<<40).pad(100, 0),
		"tensor 0: name length: expected at most 68 in the 68 bytes left, found 1099511627776")
	add("name-empty", dir(1).tensor("", tF32, 0, 8).pad(32, 32), "tensor 0: name length: expected 1 to 65535, found 0")
	add("name-twice", dir(2).tensor("a", tF32, 0, 8).tensor("a", tF32, 32, 8).pad(32, 64),
		`tensor "a": expected each name once, found it as tensor 0 and tensor 1`)
	add("five-dimensions", dir(1).tensor("a", tF32, 0, 1, 1, 1, 1, 1).pad(32, 32),
		`tensor "a": number of dimensions: expected at most 4, found 5`)
	add("many-dimensions", dir(1).str("a").u32(1<<32-1).pad(32, 32),
		`tensor "a": number of dimensions: expected at most 4, found 4294967295`)
	add("dimension-0", dir(1).tensor("a", tF32, 0, 8, 0).pad(32, 32), `tensor "a": dimension 1: expected at least 1, found 0`)
	add("dimension-huge", dir(1).tensor("a", tF32, 0, 1<<40, 1<<20).pad(32, 32),
		`tensor "a": data: expected 4611686018427387904 bytes at offset 0, found a data section of 32 bytes`)
	add("dimension-max", dir(1).tensor("a", tF32, 0, 1<<64-1).pad(32, 32),
		`tensor "a": dimensions: expected a product of at most 9223372036854775807, found [18446744073709551615]`)
	add("dimensions-overflow", dir(1).tensor("a", tF32, 0, 1<<33, 1<<33).pad(32, 32),
		`tensor "a": dimensions: expected a product of at most 9223372036854775807, found [8589934592 8589934592]`)
	add("dimensions-overflow-to-small", dir(1).tensor("a", tF32, 0, 8, 1<<32, 1<<32).pad(32, 32),
		`tensor "a": dimensions: expected a product of at most 9223372036854775807, found [8 4294967296 4294967296]`)
	add("bytes-overflow", dir(1).tensor("a", tF32, 0, 1<<62).pad(32, 32),
		`tensor "a": dimensions: expected at most 9223372036854775807 bytes of data, found [4611686018427387904]`)
	add("unknown-type", dir(1).tensor("a", 99, 0, 8).pad(32, 32), `tensor "a": type: expected a known element type, found type 99`)
	add("unknown-type-max", dir(1).tensor("a", 1<<32-1, 0, 8).pad(32, 32),
		`tensor "a": type: expected a known element type, found type 4294967295`)
	add("removed-type", dir(1).tensor("a", 31, 0, 32).pad(32, 32),
		`tensor "a": type: expected a known element type, found type 31 (Q4_0_4_4)`)
	add("row-of-part-block", dir(1).tensor("a", tQ4K, 0, 250, 4).pad(32, 1024),
		`tensor "a": dimension 0: expected a multiple of 256, the block size of Q4_K, found 250`)
}

func addLayouts(add adder) {
	two := func(a, b uint64, bytes int) raw {
		return header(3, 2, 0).tensor("a", tF32, a, 16).tensor("b", tF32, b, 8).pad(32, bytes)
	}
	add("offset-unaligned", two(0, 68, 128), `tensor "b": offset: expected a multiple of 32, found 68`)
	add("offset-unaligned-64", header(3, 1, 1).key("general.alignment", vUint32).u32(64).tensor("a", tF32, 32, 8).pad(64, 128),
		`tensor "a": offset: expected a multiple of 64, found 32`)
	add("offset-beyond-end", two(0, 4096, 128), `tensor "b": data: expected 32 bytes at offset 4096, found a data section of 128 bytes`)
	add("offset-max", two(0, 1<<64-32, 128),
		`tensor "b": data: expected 32 bytes at offset 18446744073709551584, found a data section of 128 bytes`)
	add("overlap", two(0, 32, 128), `tensor "b": offset: expected at least 64, the end of tensor "a", found 32`)
	add("overlap-behind", two(32, 64, 128), `tensor "b": offset: expected at least 96, the end of tensor "a", found 64`)
	add("overlap-same", two(0, 0, 128), `tensor "b": offset: expected at least 64, the end of tensor "a", found 0`)
	add("overlap-before", two(32, 0, 64), `tensor "a": data: expected 64 bytes at offset 32, found a data section of 64 bytes`)
	add("data-short", two(0, 64, 95), `tensor "b": data: expected 32 bytes at offset 64, found a data section of 95 bytes`)
	add("data-missing", two(0, 64, 0), `tensor "a": data: expected 64 bytes at offset 0, found a data section of 0 bytes`)
}

// part is a part of a split model with one tensor.
func part(no, count uint16, total int32, tensor string) raw {
	return header(3, 1, 3).
		key("split.no", vUint16).u16(no).
		key("split.count", vUint16).u16(count).
		key("split.tensors.count", vInt32).u32(uint32(total)).
		tensor(tensor, tF32, 0, 8).pad(32, 32)
}

func ggufSplitCases() []Case {
	const first, second = "m-00001-of-00002.gguf", "m-00002-of-00002.gguf"
	files := func(a, b []byte) map[string][]byte { return map[string][]byte{first: a, second: b} }
	a, b := part(0, 2, 2, "a"), part(1, 2, 2, "b")
	cases := []Case{
		{Name: "split-part-missing", Files: map[string][]byte{first: a}, Open: first,
			Want: second + ": open: no such file"},
		{Name: "split-first-part-missing", Files: map[string][]byte{second: b}, Open: second,
			Want: first + ": open: no such file"},
		{Name: "split-part-truncated", Files: files(a, b[:len(b)-8]), Open: first,
			Want: second + `: tensor "b": data: expected 32 bytes at offset 0, found a data section of 24 bytes`},
		{Name: "split-part-twice", Files: files(a, a), Open: first,
			Want: second + `: metadata "split.no": expected 1, found uint16 0`},
		{Name: "split-count-differs", Files: files(a, part(1, 3, 2, "b")), Open: first,
			Want: second + `: metadata "split.count": expected 2, found uint16 3`},
		{Name: "split-count-and-name", Files: files(part(0, 3, 2, "a"), b), Open: first,
			Want: first + `: metadata "split.count": expected 00002 as in the file name, found 3`},
		{Name: "split-no-key", Files: files(a, small()), Open: first,
			Want: second + `: metadata "split.no": expected 1, found no such key`},
		{Name: "split-tensor-count", Files: files(part(0, 2, 7, "a"), b), Open: first,
			Want: first + `: metadata "split.tensors.count": expected 2, the tensors in all parts, found int32 7`},
		{Name: "split-tensor-count-negative", Files: files(part(0, 2, -1, "a"), b), Open: first,
			Want: first + `: metadata "split.tensors.count": expected 2, the tensors in all parts, found int32 -1`},
		{Name: "split-tensor-twice", Files: files(a, part(1, 2, 2, "a")), Open: first,
			Want: second + `: tensor "a": expected each name once, found it in `},
		{Name: "split-name", Files: map[string][]byte{"model.gguf": a}, Open: "model.gguf",
			Want: `model.gguf: file name: expected NAME-00001-of-00002.gguf for a split model, found "model.gguf"`},
		{Name: "split-name-number", Files: map[string][]byte{"m-00003-of-00002.gguf": a, first: a, second: b}, Open: "m-00003-of-00002.gguf",
			Want: `m-00003-of-00002.gguf: file name: expected a number from 00001 to 00002, found 00003`},
		{Name: "split-only-in-name", Files: map[string][]byte{first: small()}, Open: first,
			Want: first + `: metadata "split.count": expected 00002 as in the file name, found a model that is not split`},
		{Name: "split-count-type", Files: map[string][]byte{first: meta("split.count", vString).str("2")}, Open: first,
			Want: first + `: metadata "split.count": expected an integer from 0 to 65535, found string "2"`},
		{Name: "split-count-huge", Files: map[string][]byte{first: meta("split.count", vUint64).u64(1 << 40)}, Open: first,
			Want: first + `: metadata "split.count": expected an integer from 0 to 65535, found uint64 1099511627776`},
	}
	for i := range cases {
		cases[i].Name, cases[i].Reader = "gguf-"+cases[i].Name, GGUF
	}
	return cases
}

// modelCases are containers in order that are no model.
func modelCases() []Case {
	const arch = "general.architecture"
	return []Case{
		one(Model, "model-unknown-architecture", "model.gguf", header(3, 0, 1).key(arch, vString).str("nosuch"),
			`metadata "general.architecture"`),
		one(Model, "model-no-architecture", "model.gguf", header(3, 0, 1).key("general.name", vString).str("nobody"),
			`metadata "general.architecture"`),
		one(Model, "model-architecture-type", "model.gguf", header(3, 0, 1).key(arch, vUint32).u32(7),
			`metadata "general.architecture"`),
	}
}
