package gguf_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"ridge/internal/testdata"
	"ridge/weights/gguf"
	"ridge/weights/tensor"
)

// TestBuildAllTypes builds what the gguf Python package wrote and compares the
// bytes.
func TestBuildAllTypes(t *testing.T) {
	want, err := os.ReadFile("testdata/all_types.gguf")
	if err != nil {
		t.Fatal(err)
	}
	f := open(t, "testdata/all_types.gguf")
	b := gguf.NewBuilder()
	for _, kv := range allTypes {
		if err := b.Set(kv.key, kv.value); err != nil {
			t.Fatal(err)
		}
	}
	for _, info := range f.Tensors() {
		if err := b.AddTensor(info, gguf.Bytes(f.Data(info))); err != nil {
			t.Fatal(err)
		}
	}
	if got := encode(t, b); !bytes.Equal(got, want) {
		t.Errorf("%d bytes differ from the %d of the Python package", len(got), len(want))
	}
}

// TestRewrite writes files that were read and wants the same bytes.
func TestRewrite(t *testing.T) {
	t.Run("all_types.gguf", func(t *testing.T) { checkRewrite(t, "testdata/all_types.gguf") })
	t.Run("tokenizers", func(t *testing.T) {
		for _, name := range testdata.Vocabularies(t) {
			checkRewrite(t, testdata.File(t, "tokenizers/"+name+".gguf"))
		}
	})
	for _, name := range []string{"smollm2", "gemma3", "qwen"} {
		t.Run(name, func(t *testing.T) { checkRewrite(t, testdata.Model(t, name)) })
	}
}

func checkRewrite(t *testing.T, path string) {
	t.Helper()
	want, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer want.Close()
	c := &comparer{want: want}
	if _, err := open(t, path).Builder().WriteTo(c); err != nil {
		t.Errorf("%s: %v", path, err)
	}
	if rest, err := io.Copy(io.Discard, want); err != nil || rest != 0 {
		t.Errorf("%s: %d bytes more in the file, %v", path, rest, err)
	}
}

// comparer is a writer that wants the bytes of a reader.
type comparer struct {
	want io.Reader
	n    int64
	buf  []byte
}

func (c *comparer) Write(p []byte) (int, error) {
	c.buf = slices.Grow(c.buf[:0], len(p))[:len(p)]
	n, err := io.ReadFull(c.want, c.buf)
	if err != nil || !bytes.Equal(p, c.buf[:n]) {
		return 0, fmt.Errorf("the %d bytes from %d on differ (%v)", len(p), c.n, err)
	}
	c.n += int64(len(p))
	return len(p), nil
}

// TestRewritePadding keeps the ends that different writers give their files.
func TestRewritePadding(t *testing.T) {
	b := gguf.NewBuilder()
	set(t, b, "general.name", "x")
	bare := encode(t, b)
	for _, c := range []struct {
		name string
		file []byte
	}{
		{"no tensors, no padding", bare},
		{"no tensors, padding", append(slices.Clone(bare), make([]byte, -len(bare)&31)...)},
	} {
		if got := rewrite(t, c.file); !bytes.Equal(got, c.file) {
			t.Errorf("%s: %d bytes, want %d", c.name, len(got), len(c.file))
		}
	}
	if err := b.AddTensor(gguf.TensorInfo{Name: "t", Type: tensor.I8, Dims: []uint64{5}}, gguf.Bytes("abcde")); err != nil {
		t.Fatal(err)
	}
	padded := encode(t, b)
	if len(padded)%32 != 0 {
		t.Errorf("a file with a tensor has %d bytes", len(padded))
	}
	cut := padded[:len(padded)-27]
	for _, file := range [][]byte{padded, cut} {
		if got := rewrite(t, file); !bytes.Equal(got, file) {
			t.Errorf("with a tensor: %d bytes, want %d", len(got), len(file))
		}
	}
	// What comes after the last tensor belongs to nothing and is dropped.
	for _, file := range [][]byte{append(slices.Clone(padded), 1, 2, 3), append(slices.Clone(cut), "short of padding"...)} {
		once := rewrite(t, file)
		if twice := rewrite(t, once); !bytes.Equal(once, twice) || len(once) > len(padded) {
			t.Errorf("trailing bytes: %d, then %d bytes", len(once), len(twice))
		}
	}
}

func TestVersion2(t *testing.T) {
	b, err := os.ReadFile("testdata/all_types.gguf")
	if err != nil {
		t.Fatal(err)
	}
	b[4] = 2
	f, err := gguf.OpenBytes("v2", b)
	if err != nil {
		t.Fatal(err)
	}
	if f.Version() != 2 || len(f.Keys()) != len(allTypes) || len(f.Tensors()) != 5 {
		t.Errorf("version %d, %d keys, %d tensors", f.Version(), len(f.Keys()), len(f.Tensors()))
	}
	if got := rewrite(t, b); !bytes.Equal(got, b) {
		t.Error("rewriting changes the file")
	}
}

func rewrite(t testing.TB, file []byte) []byte {
	t.Helper()
	f, err := gguf.OpenBytes("file", file)
	if err != nil {
		t.Fatal(err)
	}
	return encode(t, f.Builder())
}

func set(t testing.TB, b *gguf.Builder, key string, v any) {
	t.Helper()
	if err := b.Set(key, v); err != nil {
		t.Fatal(err)
	}
}

func TestBuilderEdits(t *testing.T) {
	b := gguf.NewBuilder()
	for _, k := range []string{"a", "b", "c"} {
		set(t, b, k, k)
	}
	set(t, b, "general.alignment", uint32(128))
	set(t, b, "b", int8(-5)) // keeps its place
	b.Remove("c")
	b.Remove("absent")
	b.Remove("general.alignment")
	set(t, b, "d", []any{})
	f, err := gguf.OpenBytes("edited", encode(t, b))
	if err != nil {
		t.Fatal(err)
	}
	if got := f.Keys(); !slices.Equal(got, []string{"a", "b", "d"}) || f.Alignment() != 32 {
		t.Errorf("keys %q, alignment %d", got, f.Alignment())
	}
	if v, _ := f.Lookup("b"); v != int8(-5) {
		t.Errorf("b is %v", v)
	}
}

func TestBuilderRefuses(t *testing.T) {
	deep := any([]any{[]uint8{1}})
	for range 8 {
		deep = []any{deep}
	}
	for _, c := range []struct {
		key   string
		value any
		want  string
	}{
		{"", "x", "key length: expected 1 to 65535, found 0"},
		{strings.Repeat("k", 65536), "x", "key length: expected 1 to 65535, found 65536"},
		{"k", 7, `metadata "k": expected a GGUF value nested at most 8 deep, found int`},
		{"k", nil, `metadata "k": expected a GGUF value nested at most 8 deep, found <nil>`},
		{"k", []any{"x"}, `metadata "k": expected a GGUF value nested at most 8 deep, found an array of array`},
		{"k", []any{[]any{[]int{1}}}, `metadata "k": expected a GGUF value nested at most 8 deep, found an array of array`},
		{"k", deep, `metadata "k": expected a GGUF value nested at most 8 deep, found an array of array`},
		{"general.alignment", uint32(12), `metadata "general.alignment": expected a power of two from 8 to 16777216, found 12`},
		{"general.alignment", int32(32), `metadata "general.alignment": expected a uint32, found int32 32`},
	} {
		if err := gguf.NewBuilder().Set(c.key, c.value); err == nil || err.Error() != "gguf: new file: "+c.want {
			t.Errorf("got  %v\nwant %s", err, c.want)
		}
	}
	for _, c := range []struct {
		info gguf.TensorInfo
		data io.WriterTo
		want string
	}{
		{gguf.TensorInfo{}, nil, "tensor name length: expected 1 to 65535, found 0"},
		{gguf.TensorInfo{Name: "there"}, nil, `tensor "there": expected each name once, found it a second time`},
		{gguf.TensorInfo{Name: "t", Dims: make([]uint64, 5)}, nil, `tensor "t": number of dimensions: expected at most 4, found 5`},
		{gguf.TensorInfo{Name: "t", Dims: []uint64{0}}, nil, `tensor "t": dimension 0: expected at least 1, found 0`},
		{gguf.TensorInfo{Name: "t", Type: 77}, nil, `tensor "t": type: expected a known element type, found type 77`},
		{gguf.TensorInfo{Name: "t", Type: tensor.Q8_0, Dims: []uint64{33}}, nil, `tensor "t": dimension 0: expected a multiple of 32, the block size of Q8_0, found 33`},
		{gguf.TensorInfo{Name: "t", Dims: []uint64{3}}, gguf.Bytes("abc"), `tensor "t": data: expected 12 bytes, found 3`},
	} {
		b := gguf.NewBuilder()
		if err := b.AddTensor(gguf.TensorInfo{Name: "there"}, gguf.Bytes("1234")); err != nil {
			t.Fatal(err)
		}
		if err := b.AddTensor(c.info, c.data); err == nil || err.Error() != "gguf: new file: "+c.want {
			t.Errorf("got  %v\nwant %s", err, c.want)
		}
	}
}

// source is tensor data that writes what it likes.
type source func(w io.Writer) (int64, error)

func (s source) WriteTo(w io.Writer) (int64, error) { return s(w) }

// TestSaveIsWhole lets saving fail half-way: the old file must stay.
func TestSaveIsWhole(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "m.gguf")
	old := gguf.NewBuilder()
	set(t, old, "general.name", "old")
	if err := old.Save(path); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("source broke")
	for _, c := range []struct {
		data source
		want string
	}{
		{func(w io.Writer) (int64, error) { return 0, broken }, "source broke"},
		{func(w io.Writer) (int64, error) { return gguf.Bytes("1234").WriteTo(w) },
			"gguf: " + path + `: tensor "t": data: expected 8 bytes, found 4`},
		{func(w io.Writer) (int64, error) { return gguf.Bytes("123456789").WriteTo(w) },
			"gguf: " + path + `: tensor "t": data: expected 8 bytes, found 9`},
	} {
		b := gguf.NewBuilder()
		if err := b.AddTensor(gguf.TensorInfo{Name: "t", Dims: []uint64{2}}, c.data); err != nil {
			t.Fatal(err)
		}
		if err := b.Save(path); err == nil || err.Error() != c.want {
			t.Errorf("got  %v\nwant %s", err, c.want)
		}
		if name := open(t, path).String("general.name", ""); name != "old" {
			t.Errorf("the file is called %q after a failed save", name)
		}
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 1 {
		t.Errorf("folder holds %v", entries)
	}
	if err := old.Save(filepath.Join(dir, "no", "m.gguf")); err == nil || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("absent folder: got %v", err)
	}
	full := errors.New("disk full")
	if _, err := old.WriteTo(failing{full}); !errors.Is(err, full) || err.Error() != "gguf: new file: write: disk full" {
		t.Errorf("got %v", err)
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

// TestSaveOverOpenFile rewrites a file from a view of itself.
func TestSaveOverOpenFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.gguf")
	want, err := os.ReadFile("testdata/all_types.gguf")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, want, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := open(t, path).Builder().Save(path); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
		t.Errorf("the file has changed (%v)", err)
	}
}

// TestRoundTrip writes random files and reads them again.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		b := gguf.NewBuilder()
		values := map[string]any{}
		keys := rapid.SliceOfNDistinct(rapid.StringN(1, 12, -1), 0, 8, rapid.ID[string]).Draw(rt, "keys")
		for _, k := range keys {
			v := genValue(3).Draw(rt, "value")
			values[k] = v
			if err := b.Set(k, v); err != nil {
				rt.Fatal(err)
			}
		}
		if a := rapid.SampledFrom([]uint32{0, 8, 32, 64, 4096}).Draw(rt, "alignment"); a > 0 {
			keys, values["general.alignment"] = append(keys, "general.alignment"), a
			if err := b.Set("general.alignment", a); err != nil {
				rt.Fatal(err)
			}
		}
		datas := map[string][]byte{}
		for i := range rapid.IntRange(0, 6).Draw(rt, "tensors") {
			info := gguf.TensorInfo{Name: fmt.Sprint("t", i), Type: rapid.SampledFrom([]tensor.DType{tensor.F32, tensor.I8, tensor.Q8_0, tensor.Q4_K}).Draw(rt, "type")}
			info.Dims = rapid.SliceOfN(rapid.Uint64Range(1, 4), 1, 4).Draw(rt, "dims")
			info.Dims[0] *= uint64(info.Type.BlockSize())
			data := rapid.SliceOfN(rapid.Byte(), 1, 16).Draw(rt, "data")
			data = bytes.Repeat(data, 1+int(info.Elements())*4)[:int(info.Elements())/info.Type.BlockSize()*info.Type.BlockBytes()]
			datas[info.Name] = data
			if err := b.AddTensor(info, gguf.Bytes(data)); err != nil {
				rt.Fatal(err)
			}
		}
		file := encode(t, b)
		f, err := gguf.OpenBytes("random", file)
		if err != nil {
			rt.Fatal(err)
		}
		if !slices.Equal(f.Keys(), keys) {
			rt.Errorf("keys %q, want %q", f.Keys(), keys)
		}
		for k, want := range values {
			if got, _ := f.Lookup(k); !reflect.DeepEqual(got, want) {
				rt.Errorf("%q is %#v, want %#v", k, got, want)
			}
		}
		for _, info := range f.Tensors() {
			if !bytes.Equal(f.Data(info), datas[info.Name]) {
				rt.Errorf("data of %s differs", info.Name)
			}
		}
		if again := encode(t, f.Builder()); !bytes.Equal(again, file) {
			rt.Errorf("rewriting changes the file: %d bytes, then %d", len(file), len(again))
		}
	})
}

// genValue draws any metadata value of at most depth arrays in each other.
func genValue(depth int) *rapid.Generator[any] {
	finite32 := rapid.Float32Range(-math.MaxFloat32, math.MaxFloat32)
	finite64 := rapid.Float64Range(-math.MaxFloat64, math.MaxFloat64)
	gens := []*rapid.Generator[any]{
		scalar(rapid.Uint8()), scalar(rapid.Int8()), scalar(rapid.Uint16()), scalar(rapid.Int16()), scalar(rapid.Uint32()),
		scalar(rapid.Int32()), scalar(rapid.Uint64()), scalar(rapid.Int64()), scalar(finite32), scalar(finite64),
		scalar(rapid.Bool()), scalar(rapid.String()),
		array(rapid.Uint8()), array(rapid.Int8()), array(rapid.Uint16()), array(rapid.Int16()), array(rapid.Uint32()),
		array(rapid.Int32()), array(rapid.Uint64()), array(rapid.Int64()), array(finite32), array(finite64),
		array(rapid.Bool()), array(rapid.String()),
	}
	if depth > 0 {
		inner := genValue(depth - 1).Filter(func(v any) bool { return reflect.TypeOf(v).Kind() == reflect.Slice })
		gens = append(gens, array(inner))
	}
	return rapid.OneOf(gens...)
}

func scalar[T any](g *rapid.Generator[T]) *rapid.Generator[any] {
	return rapid.Map(g, func(v T) any { return v })
}

func array[T any](g *rapid.Generator[T]) *rapid.Generator[any] {
	return rapid.Map(rapid.SliceOfN(g, 0, 5), func(v []T) any { return append(make([]T, 0), v...) })
}

// TestDepth nests arrays as deep as they may be.
func TestDepth(t *testing.T) {
	deepest := any([]uint8{1})
	for range 7 {
		deepest = []any{deepest}
	}
	b := gguf.NewBuilder()
	set(t, b, "k", deepest)
	f, err := gguf.OpenBytes("deep", encode(t, b))
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := f.Lookup("k"); !reflect.DeepEqual(got, deepest) {
		t.Errorf("got %v", got)
	}
	if err := b.Set("k", []any{deepest}); err == nil {
		t.Error("one deeper was accepted")
	}
}
