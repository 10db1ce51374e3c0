package badfiles

import (
	"encoding/binary"
	"fmt"
	"strings"
)

// st is a safetensors file with a header that says its own length.
func st(header string, data int) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(b, header...), make([]byte, data)...)
}

// entry describes a tensor of float32 in a header.
func entry(name, shape string, start, end int) string {
	return fmt.Sprintf(`"%s":{"dtype":"F32","shape":%s,"data_offsets":[%d,%d]}`, name, shape, start, end)
}

func safetensorsCases() []Case {
	var cases []Case
	add := func(name string, b []byte, want string) {
		cases = append(cases, one(Safetensors, "safetensors-"+name, "model.safetensors", b, want))
	}
	addLengths(add)
	addJSON(add)
	addDescriptions(add)
	addOffsets(add)
	return cases
}

func addLengths(add func(string, []byte, string)) {
	add("empty", nil, "header length: expected 8 bytes, found 0")
	add("short", []byte("abc"), "header length: expected 8 bytes, found 3")
	add("lfs-pointer", []byte("version https://git-lfs.github.com/spec/v1\n"),
		"header length: expected a number, found a Git LFS pointer, not the file it stands for")
	add("length", append(binary.LittleEndian.AppendUint64(nil, 1<<40), make([]byte, 92)...),
		"header length: expected at most 92, found 1099511627776")
	add("length-max", append(binary.LittleEndian.AppendUint64(nil, 1<<64-1), make([]byte, 92)...),
		"header length: expected at most 92, found 18446744073709551615")
	add("length-one-more", append(binary.LittleEndian.AppendUint64(nil, 3), '{', '}'), "header length: expected at most 2, found 3")
	add("no-header", st("", 0), "header: expected '{' at its start, found nothing")
	full := st("{"+entry("a", "[2,2]", 0, 16)+"}", 16)
	add("truncated-header", full[:40], "header length: expected at most 32, found ")
	add("truncated-data", full[:len(full)-1], `tensor "a": data_offsets: expected an end within the 15 bytes of data, found 16`)
	add("trailing-data", append(full[:len(full):len(full)], 0), "data: expected 16 bytes as the header says, found 17")
}

func addJSON(add func(string, []byte, string)) {
	add("not-json", st("GGUF", 0), "header: expected '{' at its start, found 'G'")
	add("array", st("[]", 0), "header: expected '{' at its start, found '['")
	add("utf8", st("{\"\xff\":{}}", 0), "header: expected UTF-8, found other bytes")
	add("open-brace", st("{", 0), "header: expected a string, found the end of it")
	add("open-string", st(`{"abc`, 0), "header: expected the end of a string, found the end of it")
	add("open-escape", st(`{"abc\`, 0), "header: expected the end of a string, found the end of it")
	add("escape", st(`{"a\q":1}`, 0), `header: expected a string with valid escapes, found '"' at byte 1 of it`)
	add("control-byte", st("{\"a\nb\":1}", 0), `header: expected no control character in a string, found '\n' at byte 3 of it`)
	add("comma", st(`{"__metadata__":{} "a":1}`, 0), `header: expected ',' or '}', found '"' at byte 19 of it`)
	add("comma-last", st(`{"__metadata__":{},}`, 0), `header: expected a string, found '}' at byte 19 of it`)
	add("two-objects", st(`{}{}`, 0), "header: expected nothing after the closing brace, found '{' at byte 2 of it")
	add("nul-padding", st("{}\x00\x00", 0), `header: expected nothing after the closing brace, found '\x00' at byte 2 of it`)
	add("tensor-is-number", st(`{"a":1}`, 0), "header: expected '{', found '1' at byte 5 of it")
	add("metadata-number", st(`{"__metadata__":{"n":1}}`, 0), "header: expected a string, found '1' at byte 21 of it")
	add("metadata-twice", st(`{"__metadata__":{},"__metadata__":{}}`, 0), "__metadata__: expected it once, found it a second time")
	add("metadata-key-twice", st(`{"__metadata__":{"a":"1","a":"2"}}`, 0), `__metadata__ "a": expected each key once, found it a second time`)
	add("deep", st(`{"a":{"x":`+strings.Repeat("[", 5000)+strings.Repeat("]", 5000)+`}}`, 0),
		"header: expected values nested at most 32 deep, found '['")
}

func addDescriptions(add func(string, []byte, string)) {
	desc := func(name, body, want string) { add(name, st(`{"a":{`+body+`}}`, 16), want) }
	add("name-twice", st("{"+entry("a", "[2]", 0, 8)+","+entry("a", "[2]", 8, 16)+"}", 16),
		`tensor "a": expected each name once, found it a second time`)
	desc("no-dtype", `"shape":[4],"data_offsets":[0,16]`, `tensor "a": dtype: expected it once, found it 0 times`)
	desc("no-shape", `"dtype":"F32","data_offsets":[0,16]`, `tensor "a": shape: expected it once, found it 0 times`)
	desc("no-offsets", `"dtype":"F32","shape":[4]`, `tensor "a": data_offsets: expected it once, found it 0 times`)
	desc("shape-twice", `"dtype":"F32","shape":[4],"shape":[2],"data_offsets":[0,16]`, `tensor "a": shape: expected it once, found it 2 times`)
	desc("dtype-unknown", `"dtype":"Q4_K","shape":[4],"data_offsets":[0,16]`,
		`tensor "a": dtype: expected a known element type, found "Q4_K"`)
	desc("dtype-number", `"dtype":12,"shape":[4],"data_offsets":[0,16]`, "header: expected a string, found '1' at byte 14 of it")
	desc("shape-negative", `"dtype":"F32","shape":[-4],"data_offsets":[0,16]`,
		"header: expected an integer of at least 0, found '-' at byte 29 of it")
	desc("shape-float", `"dtype":"F32","shape":[4.0],"data_offsets":[0,16]`, "header: expected ',' or ']', found '.' at byte 30 of it")
	desc("shape-leading-zero", `"dtype":"F32","shape":[04],"data_offsets":[0,16]`,
		"header: expected an integer of at least 0, found '0' at byte 29 of it")
	desc("shape-number", `"dtype":"F32","shape":4,"data_offsets":[0,16]`, "header: expected '[', found '4' at byte 28 of it")
	desc("shape-too-large", `"dtype":"F32","shape":[18446744073709551616],"data_offsets":[0,16]`,
		"header: expected an integer below 2^64, found '1' at byte 29 of it")
	desc("shape-huge", `"dtype":"F32","shape":[1099511627776],"data_offsets":[0,16]`,
		`tensor "a": data_offsets: expected 4398046511104 bytes for F32 of shape [1099511627776], found 16`)
	desc("shape-overflow", `"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,16]`,
		`tensor "a": shape: expected fewer than 2^64 bits of data, found [4294967296 4294967296]`)
	desc("half-bytes", `"dtype":"F4","shape":[3],"data_offsets":[0,16]`, `tensor "a": shape: expected whole bytes of F4, found [3]`)
	desc("three-offsets", `"dtype":"F32","shape":[4],"data_offsets":[0,8,16]`, `tensor "a": data_offsets: expected 2 integers, found 3`)
	desc("offsets-reversed", `"dtype":"F32","shape":[4],"data_offsets":[16,0]`,
		`tensor "a": data_offsets: expected a start and an end, found [16 0]`)
	desc("offsets-and-shape", `"dtype":"F32","shape":[2],"data_offsets":[0,16]`,
		`tensor "a": data_offsets: expected 8 bytes for F32 of shape [2], found 16`)
}

func addOffsets(add func(string, []byte, string)) {
	two := func(name string, a, b, data int, want string) {
		add(name, st("{"+entry("a", "[2]", a, a+8)+","+entry("b", "[2]", b, b+8)+"}", data), want)
	}
	two("overlap", 0, 4, 16, `tensor "b": data_offsets: expected a start at 8, the end of tensor "a", found 4`)
	two("overlap-same", 0, 0, 8, `tensor "b": data_offsets: expected a start at 8, the end of tensor "a", found 0`)
	two("hole", 0, 16, 24, `tensor "b": data_offsets: expected a start at 8, the end of tensor "a", found 16`)
	two("hole-at-start", 16, 8, 24, `tensor "b": data_offsets: expected a start at 0, the start of the data, found 8`)
	two("beyond-end", 0, 8, 12, `tensor "b": data_offsets: expected an end within the 12 bytes of data, found 16`)
	add("beyond-end-far", st(`{"a":{"dtype":"U8","shape":[4],"data_offsets":[18446744073709551600,18446744073709551604]}}`, 16),
		`tensor "a": data_offsets: expected a start at 0, the start of the data, found 18446744073709551600`)
}

func safetensorsIndexCases() []Case {
	const index, first, second = "model.safetensors.index.json", "m-00001-of-00002.safetensors", "m-00002-of-00002.safetensors"
	a, b := st("{"+entry("a", "[2]", 0, 8)+"}", 8), st("{"+entry("b", "[2]", 0, 8)+"}", 8)
	weightMap := func(body string) []byte { return []byte(`{"metadata":{"total_size":16},"weight_map":{` + body + `}}`) }
	const both = `"a":"` + first + `","b":"` + second + `"`
	var cases []Case
	add := func(name string, files map[string][]byte, want string) {
		cases = append(cases, Case{Name: "safetensors-index-" + name, Reader: Safetensors, Files: files, Open: index, Want: want})
	}
	files := func(idx, a, b []byte) map[string][]byte {
		all := map[string][]byte{index: idx}
		if a != nil {
			all[first] = a
		}
		if b != nil {
			all[second] = b
		}
		return all
	}
	add("empty", files(nil, a, b), index+": index: expected '{', found the end of it")
	add("not-json", files([]byte("<html>"), a, b), index+": index: expected '{', found '<' at byte 0 of it")
	add("no-map", files([]byte(`{"metadata":{}}`), a, b), index+": weight_map: expected it once, found it 0 times")
	add("map-empty", files(weightMap(""), a, b), index+": weight_map: expected at least one tensor, found none")
	add("map-number", files(weightMap(`"a":1`), a, b), index+": index: expected a string, found '1' at byte 48 of it")
	add("tensor-twice", files(weightMap(both+`,"a":"`+second+`"`), a, b), index+`: tensor "a": expected each name once, found it a second time`)
	add("file-missing", files(weightMap(both), a, nil), second+": open: no such file")
	add("file-truncated", files(weightMap(both), a, b[:len(b)-1]),
		second+`: tensor "b": data_offsets: expected an end within the 7 bytes of data, found 8`)
	add("tensor-missing", files(weightMap(both+`,"c":"`+second+`"`), a, b),
		index+`: tensor "c": expected it in "`+second+`", found no tensor of that name`)
	add("tensor-elsewhere", files(weightMap(`"a":"`+second+`","b":"`+first+`"`), a, b), index+`: tensor "a": expected it in "`+second+`", found it in `)
	add("tensor-in-both", files(weightMap(both), a, a), second+`: tensor "a": expected each name once, found it in `)
	for name, file := range map[string]string{"path-up": "../" + first, "path-absolute": "/etc/passwd", "path-dot": "..",
		"path-empty": "", "path-folder": "x/" + first, "path-windows": `x\\` + first} {
		add(name, files(weightMap(`"a":"`+file+`"`), a, b), index+`: tensor "a": expected the name of a file in the same folder, found "`+file+`"`)
	}
	cases = append(cases, Case{Name: "safetensors-folder-empty", Reader: Safetensors, Files: map[string][]byte{"README.md": nil},
		Want: "safetensors-folder-empty: folder: expected model.safetensors or model.safetensors.index.json, found neither"})
	return cases
}
