package safetensors_test

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"

	"ridge/internal/badfiles"
	"ridge/weights/safetensors"
)

// TestBroken opens every broken single file in memory; package badfiles itself
// opens all of them from the disk.
func TestBroken(t *testing.T) {
	for _, c := range badfiles.For(badfiles.Safetensors) {
		if !strings.HasSuffix(c.Open, ".safetensors") {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			var err error
			checkMemory(t, c.Files[c.Open], func() { _, err = safetensors.OpenBytes(c.Open, c.Files[c.Open]) })
			if err == nil || !strings.HasPrefix(err.Error(), "safetensors: "+c.Want) {
				t.Errorf("got  %v\nwant %s", err, c.Want)
			}
		})
	}
}

// TestCut cuts a file at every byte: the reference format has nothing to spare.
func TestCut(t *testing.T) {
	full, err := os.ReadFile("testdata/types.safetensors")
	if err != nil {
		t.Fatal(err)
	}
	for n := range len(full) {
		checkMemory(t, full[:n], func() { _, err = safetensors.OpenBytes("cut", full[:n:n]) })
		if err == nil {
			t.Errorf("%d bytes: no error", n)
			continue
		}
		checkMessage(t, err)
	}
}

// TestFlip changes single bytes; no change may do harm.
func TestFlip(t *testing.T) {
	full, err := os.ReadFile("testdata/types.safetensors")
	if err != nil {
		t.Fatal(err)
	}
	for i := range full {
		for _, x := range []byte{0x01, 0x80, 0xff} {
			b := bytes.Clone(full)
			b[i] ^= x
			checkOpen(t, b)
		}
	}
}

// TestMemoryOfSmallParts makes headers of as many of the smallest parts as fit.
func TestMemoryOfSmallParts(t *testing.T) {
	const n = 5000
	var tensors, metadata strings.Builder
	for i := range n {
		fmt.Fprintf(&tensors, `,"%d":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}`, i)
		fmt.Fprintf(&metadata, `,"%d":""`, i)
	}
	ones := strings.Repeat(",1", n)[1:]
	for name, header := range map[string]string{
		"tensors":  "{" + tensors.String()[1:] + "}",
		"metadata": `{"__metadata__":{` + metadata.String()[1:] + "}}",
		"shape":    `{"a":{"dtype":"U8","shape":[0,` + ones + `],"data_offsets":[0,0]}}`,
		"unknown":  `{"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0],"x":[` + ones + `]}}`,
		"offsets":  `{"a":{"dtype":"U8","shape":[0],"data_offsets":[` + ones + `]}}`,
	} {
		b := append([]byte{byte(len(header)), byte(len(header) >> 8), byte(len(header) >> 16), 0, 0, 0, 0, 0}, header...)
		t.Run(name, func(t *testing.T) { checkOpen(t, b) })
	}
}

// checkOpen opens any bytes and checks what has to be true whatever they are.
func checkOpen(t *testing.T, b []byte) {
	t.Helper()
	var f *safetensors.File
	var err error
	checkMemory(t, b, func() { f, err = safetensors.OpenBytes("hostile", b) })
	if err != nil {
		checkMessage(t, err)
		if f != nil {
			t.Error("a file beside the error")
		}
		return
	}
	total := 0
	for _, info := range f.Tensors() {
		data := f.Data(info.Name)
		if uint64(len(data)) != info.Size {
			t.Errorf("%d bytes of data, want %d", len(data), info.Size)
		}
		total += len(data)
		m, err := f.Mat(info.Name)
		if err != nil {
			checkMessage(t, err)
		} else if m.Rows < 1 || m.Cols < 1 || m.Rows*m.Type.RowBytes(m.Cols) != len(data) {
			t.Errorf("matrix %d x %d of %v in %d bytes", m.Rows, m.Cols, m.Type, len(data))
		}
	}
	if total > len(b) {
		t.Errorf("%d bytes of tensors in a file of %d", total, len(b))
	}
}

func checkMessage(t *testing.T, err error) {
	t.Helper()
	msg := err.Error()
	if !strings.HasPrefix(msg, "safetensors: ") || !strings.Contains(msg, ": expected ") || !strings.Contains(msg, ", found ") ||
		strings.ContainsAny(msg, "\n\r\x00\x1b") || len(msg) > 500 {
		t.Errorf("message %q", msg)
	}
}

// checkMemory checks that do, which reads b, takes memory in proportion to b.
func checkMemory(t *testing.T, b []byte, do func()) {
	t.Helper()
	const perByte, constant = 32, 1 << 16
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	if got, most := after.TotalAlloc-before.TotalAlloc, uint64(len(b)*perByte+constant); got > most {
		t.Errorf("a file of %d bytes took %d bytes of memory, want at most %d", len(b), got, most)
	}
}

func FuzzOpen(f *testing.F) {
	for _, name := range []string{"testdata/types.safetensors", "testdata/sorted.safetensors"} {
		b, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	for _, c := range badfiles.For(badfiles.Safetensors) {
		for _, b := range c.Files {
			if len(b) < 4096 {
				f.Add(b)
			}
		}
	}
	f.Fuzz(checkOpen)
}
