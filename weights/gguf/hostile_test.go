package gguf_test

import (
	"bytes"
	"os"
	"runtime"
	"strings"
	"testing"

	"ridge/internal/badfiles"
	"ridge/weights/gguf"
	"ridge/weights/tensor"
)

// TestBroken opens every broken file, in memory where it is one file; package
// badfiles itself opens them from the disk.
func TestBroken(t *testing.T) {
	for _, c := range badfiles.For(badfiles.GGUF) {
		if len(c.Files) != 1 || strings.HasPrefix(c.Name, "gguf-split") {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			var err error
			checkMemory(t, c.Files[c.Open], func() { _, err = gguf.OpenBytes(c.Open, c.Files[c.Open]) })
			if err == nil || err.Error() != "gguf: "+c.Want {
				t.Errorf("got  %v\nwant %s", err, c.Want)
			}
		})
	}
}

// TestCut cuts a file at every byte: only the padding at its end may go.
func TestCut(t *testing.T) {
	full, err := os.ReadFile("testdata/all_types.gguf")
	if err != nil {
		t.Fatal(err)
	}
	f, err := gguf.OpenBytes("full", full)
	if err != nil {
		t.Fatal(err)
	}
	last := f.Tensors()[len(f.Tensors())-1]
	needed := len(full) - (-int(last.Size) & 63)
	for n := range len(full) {
		checkMemory(t, full[:n], func() { _, err = gguf.OpenBytes("cut.gguf", full[:n:n]) })
		if (err == nil) != (n >= needed) {
			t.Errorf("%d bytes: got error %v", n, err)
		}
		if err != nil {
			checkMessage(t, err)
		}
	}
}

// TestFlip changes single bytes of the part of a file before its data. Some
// changes make another file in order; no change may do harm.
func TestFlip(t *testing.T) {
	full, err := os.ReadFile("testdata/all_types.gguf")
	if err != nil {
		t.Fatal(err)
	}
	for i := range 1500 {
		for _, x := range []byte{0x01, 0x80, 0xff} {
			b := bytes.Clone(full)
			b[i] ^= x
			checkOpen(t, b)
		}
	}
}

// checkOpen opens any bytes and checks what has to be true whatever they are.
func checkOpen(t *testing.T, b []byte) {
	t.Helper()
	var f *gguf.File
	var err error
	checkMemory(t, b, func() { f, err = gguf.OpenBytes("hostile.gguf", b) })
	if err != nil {
		checkMessage(t, err)
		if f != nil {
			t.Error("a file beside the error")
		}
		return
	}
	for _, info := range f.Tensors() {
		data := f.Data(info)
		if uint64(len(data)) != info.Size {
			t.Errorf("%d bytes of data, want %d", len(data), info.Size)
		}
		m, err := f.Mat(info.Name)
		if err != nil || m.Rows < 1 || m.Cols < 1 || m.Rows*m.Type.RowBytes(m.Cols) != len(data) {
			t.Errorf("matrix %d x %d of %v in %d bytes: %v", m.Rows, m.Cols, m.Type, len(data), err)
		}
	}
	once := encode(t, f.Builder())
	if again := rewrite(t, once); !bytes.Equal(once, again) {
		t.Errorf("rewriting is not stable: %d bytes, then %d", len(once), len(again))
	}
}

func checkMessage(t *testing.T, err error) {
	t.Helper()
	msg := err.Error()
	if !strings.HasPrefix(msg, "gguf: ") || !strings.Contains(msg, ": expected ") || !strings.Contains(msg, ", found ") ||
		strings.ContainsAny(msg, "\n\r\x00\x1b") || len(msg) > 500 {
		t.Errorf("message %q", msg)
	}
}

// checkMemory checks that do, which reads b, takes memory in proportion to b:
// the dearest byte is one of an empty nested array, 12 of which take 64.
func checkMemory(t *testing.T, b []byte, do func()) {
	t.Helper()
	const perByte, constant = 16, 1 << 16
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	if got, most := after.TotalAlloc-before.TotalAlloc, uint64(len(b)*perByte+constant); got > most {
		t.Errorf("a file of %d bytes took %d bytes of memory, want at most %d", len(b), got, most)
	}
}

// TestMemoryOfSmallParts makes files of as many of the smallest parts as fit,
// the worst that can be asked of the reader.
func TestMemoryOfSmallParts(t *testing.T) {
	const n = 20000
	entries, tensors := gguf.NewBuilder(), gguf.NewBuilder()
	set(t, tensors, "general.alignment", uint32(8)) // the least padding
	arrays, empty, texts := make([]any, n), make([]any, n), make([]string, n)
	for i := range n {
		name := string([]byte{byte(i), byte(i >> 8), 'a'})
		set(t, entries, name, uint8(i))
		if err := tensors.AddTensor(gguf.TensorInfo{Name: name, Type: tensor.I8}, gguf.Bytes{1}); err != nil {
			t.Fatal(err)
		}
		arrays[i], empty[i] = []bool{}, []any{}
	}
	for name, b := range map[string]*gguf.Builder{"entries": entries, "tensors": tensors} {
		t.Run(name, func(t *testing.T) { checkOpen(t, encode(t, b)) })
	}
	for name, v := range map[string]any{"arrays": arrays, "empty": empty, "texts": texts, "bytes": make([]uint8, 12*n)} {
		b := gguf.NewBuilder()
		set(t, b, name, v)
		t.Run(name, func(t *testing.T) { checkOpen(t, encode(t, b)) })
	}
}

func FuzzOpen(f *testing.F) {
	full, err := os.ReadFile("testdata/all_types.gguf")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(full)
	for _, c := range badfiles.For(badfiles.GGUF) {
		for _, b := range c.Files {
			if len(b) < 4096 {
				f.Add(b)
			}
		}
	}
	f.Fuzz(checkOpen)
}
