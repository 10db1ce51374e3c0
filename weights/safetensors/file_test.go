package safetensors_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"ridge/weights/safetensors"
	"ridge/weights/tensor"
)

const trickyName = "naïve \"name\"\\\n<b>"

// TestTypes reads what the reference implementation wrote.
func TestTypes(t *testing.T) {
	f := open(t, "testdata/types.safetensors")
	if got := f.Metadata(); !maps.Equal(got, map[string]string{"format": "pt é \"q\" <b> & \n"}) {
		t.Errorf("metadata %q", got)
	}
	want := []struct {
		name, typ string
		shape     []uint64
		dtype     tensor.DType
		rows      int // 0: no matrix
		cols      int
	}{
		{"f64", "F64", []uint64{2}, tensor.F64, 1, 2},
		{"f32", "F32", []uint64{2, 3}, tensor.F32, 2, 3},
		{"f16", "F16", []uint64{1, 2, 3}, tensor.F16, 2, 3},
		{"bf16", "BF16", []uint64{2, 2, 2}, tensor.BF16, 4, 2},
		{"i64", "I64", []uint64{3}, tensor.I64, 1, 3},
		{"i32", "I32", []uint64{2, 2}, tensor.I32, 2, 2},
		{"i16", "I16", []uint64{5}, tensor.I16, 1, 5},
		{"i8", "I8", []uint64{6}, tensor.I8, 1, 6},
		{"u8", "U8", []uint64{7}, 0, 0, 0},
		{"bool", "BOOL", []uint64{3}, 0, 0, 0},
		{"f8_e4m3", "F8_E4M3", []uint64{4}, 0, 0, 0},
		{"f8_e5m2", "F8_E5M2", []uint64{4}, 0, 0, 0},
		{"scalar", "F32", nil, tensor.F32, 1, 1},
		{"empty", "F32", []uint64{0, 7}, tensor.F32, 0, 0},
		{trickyName, "F32", []uint64{1}, tensor.F32, 1, 1},
	}
	if n := len(f.Tensors()); n != len(want) {
		t.Errorf("%d tensors, want %d", n, len(want))
	}
	for _, w := range want {
		info, ok := f.Tensor(w.name)
		dtype, hasDType := info.DType()
		if !ok || info.Type != w.typ || !slices.Equal(info.Shape, w.shape) || dtype != w.dtype || hasDType == (w.typ != "F32" && w.rows == 0) {
			t.Errorf("%s: %+v, %v %v", w.name, info, dtype, hasDType)
		}
		m, err := f.Mat(w.name)
		if w.rows == 0 {
			if err == nil {
				t.Errorf("%s is a matrix of %v", w.name, m.Type)
			}
			continue
		}
		if err != nil || m.Type != w.dtype || m.Rows != w.rows || m.Cols != w.cols || len(m.Data) != m.Rows*m.Type.RowBytes(m.Cols) {
			t.Errorf("%s: %v %d x %d in %d bytes, %v", w.name, m.Type, m.Rows, m.Cols, len(m.Data), err)
		}
	}
	for i := range 3 {
		if got := binary.LittleEndian.Uint64(f.Data("i64")[8*i:]); got != uint64(i) {
			t.Errorf("i64[%d] is %d", i, got)
		}
	}
	if got := f.Data("scalar"); !bytes.Equal(got, []byte{0, 0, 0xc0, 0x3f}) {
		t.Errorf("scalar is % x", got)
	}
	if f.Data("nobody") != nil {
		t.Error("data of an absent tensor")
	}
	for name, want := range map[string]string{
		"nobody": `tensor "nobody": expected it in the file, found no tensor of that name`,
		"u8":     `tensor "u8": dtype: expected F64, F32, F16, BF16, I64, I32, I16 or I8, found U8`,
		"empty":  `tensor "empty": shape: expected no 0, found [0 7]`,
	} {
		if _, err := f.Mat(name); err == nil || err.Error() != "safetensors: testdata/types.safetensors: "+want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
}

// TestRewrite writes files of the reference implementation again and wants the
// same bytes.
func TestRewrite(t *testing.T) {
	for _, name := range []string{"types.safetensors", "sorted.safetensors"} {
		path := filepath.Join("testdata", name)
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		f := open(t, path)
		tensors := copyOf(f)
		slices.Reverse(tensors) // the order given does not matter
		out := filepath.Join(t.TempDir(), name)
		if err := safetensors.Write(out, tensors, f.Metadata()); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(out); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: got %q\nwant %q", name, got, want)
		}
	}
}

func copyOf(f *safetensors.File) []safetensors.Tensor {
	var out []safetensors.Tensor
	for _, i := range f.Tensors() {
		out = append(out, safetensors.Tensor{Name: i.Name, Type: i.Type, Shape: i.Shape, Data: safetensors.Bytes(f.Data(i.Name))})
	}
	return out
}

// TestSharded opens a model in two files by its index and by its folder.
func TestSharded(t *testing.T) {
	dir := t.TempDir()
	whole := open(t, "testdata/sorted.safetensors")
	all := copyOf(whole)
	const a, b = "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"
	index := `{"metadata": {"total_size": 144, "x": [1, {"y": null}]}, "weight_map": {`
	for i, t := range all {
		index += fmt.Sprintf("%q: %q,", t.Name, map[bool]string{true: a, false: b}[i < 4])
	}
	index = strings.TrimSuffix(index, ",") + "}}\n"
	write := func(name string, tensors []safetensors.Tensor, md map[string]string) {
		if err := safetensors.Write(filepath.Join(dir, name), tensors, md); err != nil {
			t.Fatal(err)
		}
	}
	write(a, all[:4], map[string]string{"format": "pt", "n": "1"})
	write(b, all[4:], map[string]string{"format": "np", "m": "2"})
	indexPath := filepath.Join(dir, "model.safetensors.index.json")
	if err := os.WriteFile(indexPath, []byte(index), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{dir, indexPath} {
		f := open(t, path)
		if got := f.Metadata(); !maps.Equal(got, map[string]string{"format": "pt", "n": "1", "m": "2"}) {
			t.Errorf("metadata %q", got)
		}
		if got := f.Shards(); !reflect.DeepEqual(got, []string{filepath.Join(dir, a), filepath.Join(dir, b)}) {
			t.Errorf("shards %q", got)
		}
		if len(f.Tensors()) != len(all) {
			t.Errorf("%d tensors, want %d", len(f.Tensors()), len(all))
		}
		for i, w := range all {
			info, _ := f.Tensor(w.Name)
			if !bytes.Equal(f.Data(w.Name), w.Data.(safetensors.Bytes)) || info.Shard != map[bool]int{true: 0, false: 1}[i < 4] {
				t.Errorf("%s: %+v or its data differ", w.Name, info)
			}
		}
		f.Prefetch()
		f.DropPages()
		if !bytes.Equal(f.Data(all[0].Name), all[0].Data.(safetensors.Bytes)) {
			t.Error("data differs after DropPages")
		}
	}
	// A single file goes before the index.
	write("model.safetensors", all[:1], nil)
	if f := open(t, dir); len(f.Tensors()) != 1 {
		t.Errorf("%d tensors, want 1", len(f.Tensors()))
	}
}

func TestOpenErrors(t *testing.T) {
	absent := filepath.Join(t.TempDir(), "absent.safetensors")
	if _, err := safetensors.Open(absent); !errors.Is(err, os.ErrNotExist) || strings.Count(err.Error(), absent) != 1 {
		t.Errorf("absent file: got %v", err)
	}
}

func TestWriteRefuses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.safetensors")
	one := func(name, typ string, shape []uint64, data string) []safetensors.Tensor {
		return []safetensors.Tensor{{Name: name, Type: typ, Shape: shape, Data: safetensors.Bytes(data)}}
	}
	for _, c := range []struct {
		tensors  []safetensors.Tensor
		metadata map[string]string
		want     string
	}{
		{one("__metadata__", "U8", nil, "1"), nil, `tensor "__metadata__": expected another name, found the one of the metadata`},
		{one("\xff", "U8", nil, "1"), nil, `tensor "\xff": expected UTF-8, found other bytes`},
		{append(one("a", "U8", nil, "1"), one("a", "I8", nil, "1")...), nil, `tensor "a": expected each name once, found it a second time`},
		{one("a", "Q8_0", nil, "1"), nil, `tensor "a": dtype: expected a known element type, found "Q8_0"`},
		{one("a", "F32", []uint64{2}, "1234"), nil, `tensor "a": data: expected 8 bytes, found 4`},
		{one("a", "F4", []uint64{3}, "1"), nil, `tensor "a": shape: expected whole bytes of F4, found [3]`},
		{nil, map[string]string{"k": "\xff"}, `__metadata__ "k": expected UTF-8, found other bytes`},
		{[]safetensors.Tensor{{Name: "a", Type: "F32", Data: source("12345")}}, nil, `tensor "a": data: expected 4 bytes, found 5`},
	} {
		err := safetensors.Write(path, c.tensors, c.metadata)
		if err == nil || err.Error() != "safetensors: "+path+": "+c.want {
			t.Errorf("got  %v\nwant %s", err, c.want)
		}
	}
	if entries, _ := os.ReadDir(filepath.Dir(path)); len(entries) != 0 {
		t.Errorf("folder holds %v", entries)
	}
	if err := safetensors.Write(filepath.Join(path, "x"), nil, nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("absent folder: got %v", err)
	}
}

// source is tensor data that is not Bytes, so that its length is not known.
type source string

func (s source) WriteTo(w io.Writer) (int64, error) {
	n, err := io.WriteString(w, string(s))
	return int64(n), err
}

// TestRoundTrip writes random files and reads them again.
func TestRoundTrip(t *testing.T) {
	dir := t.TempDir()
	widths := map[string]int{"U8": 1, "BF16": 2, "F32": 4, "I64": 8, "BOOL": 1}
	rapid.Check(t, func(rt *rapid.T) {
		names := rapid.SliceOfNDistinct(rapid.String(), 0, 6, rapid.ID[string]).Draw(rt, "names")
		want := map[string]safetensors.Tensor{}
		var tensors []safetensors.Tensor
		for _, name := range names {
			typ := rapid.SampledFrom(slices.Sorted(maps.Keys(widths))).Draw(rt, "type")
			shape := rapid.SliceOfN(rapid.Uint64Range(0, 4), 0, 4).Draw(rt, "shape")
			n := widths[typ]
			for _, d := range shape {
				n *= int(d)
			}
			data := rapid.SliceOfN(rapid.Byte(), n, n).Draw(rt, "data")
			want[name] = safetensors.Tensor{Name: name, Type: typ, Shape: shape, Data: safetensors.Bytes(data)}
			tensors = append(tensors, want[name])
		}
		metadata := rapid.MapOfN(rapid.String(), rapid.String(), 0, 3).Draw(rt, "metadata")
		path := filepath.Join(dir, "m.safetensors")
		if err := safetensors.Write(path, tensors, metadata); err != nil {
			rt.Fatal(err)
		}
		file, err := os.ReadFile(path)
		if err != nil {
			rt.Fatal(err)
		}
		f, err := safetensors.OpenBytes(path, file)
		if err != nil {
			rt.Fatal(err)
		}
		if !maps.Equal(f.Metadata(), metadata) || len(f.Tensors()) != len(want) {
			rt.Errorf("metadata %q, want %q; %d tensors, want %d", f.Metadata(), metadata, len(f.Tensors()), len(want))
		}
		for name, w := range want {
			got, _ := f.Tensor(name)
			if got.Type != w.Type || !slices.Equal(got.Shape, w.Shape) || !bytes.Equal(f.Data(name), w.Data.(safetensors.Bytes)) {
				rt.Errorf("%q is %+v, want %+v", name, got, w)
			}
		}
		if err := safetensors.Write(path, copyOf(f), f.Metadata()); err != nil {
			rt.Fatal(err)
		}
		if again, err := os.ReadFile(path); err != nil || !bytes.Equal(again, file) {
			rt.Errorf("rewriting changes the file (%v)", err)
		}
	})
}

// open opens path and closes it after the test.
func open(t testing.TB, path string) *safetensors.File {
	t.Helper()
	f, err := safetensors.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for range 2 {
			if err := f.Close(); err != nil {
				t.Error(err)
			}
		}
	})
	return f
}
