package gguf_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"ridge/internal/testdata"
	"ridge/weights/gguf"
	"ridge/weights/tensor"
)

// allTypes is what make_goldens.py wrote into testdata/all_types.gguf, in file
// order.
var allTypes = []struct {
	key   string
	value any
}{
	{"general.architecture", "llama"},
	{"t.uint8", uint8(200)},
	{"t.int8", int8(-100)},
	{"t.uint16", uint16(60000)},
	{"t.int16", int16(-30000)},
	{"t.uint32", uint32(4000000000)},
	{"t.int32", int32(-2000000000)},
	{"t.float32", float32(0.15625)},
	{"t.uint64", uint64(1<<63 + 5)},
	{"t.int64", int64(-1 << 62)},
	{"t.float64", 1e-300},
	{"t.true", true},
	{"t.false", false},
	{"t.string", "naïve \U0001f600\n"},
	{"t.empty", "x"},
	{"a.uint8", []uint8{1, 2, 255}},
	{"a.int8", []int8{-1, 2, -128}},
	{"a.uint16", []uint16{1, 65535}},
	{"a.int16", []int16{-1, 32767}},
	{"a.uint32", []uint32{1, 1<<32 - 1}},
	{"a.int32", []int32{-1, 1<<31 - 1}},
	{"a.uint64", []uint64{1, 1<<64 - 1}},
	{"a.int64", []int64{-1, 1<<63 - 1}},
	{"a.float32", []float32{0.5, -1.25}},
	{"a.float64", []float64{1e300, -1e-300}},
	{"a.bool", []bool{true, false, true}},
	{"a.string", []string{"", "a", "中文"}},
	{"a.nested", []any{[]int32{1, 2, 3}, []int32{4}}},
	{"a.nested.string", []any{[]string{"x", ""}, []string{"yz"}}},
	{"general.alignment", uint32(64)},
}

func TestAllTypes(t *testing.T) {
	f := open(t, "testdata/all_types.gguf")
	keys := f.Keys()
	if len(keys) != len(allTypes) {
		t.Errorf("%d keys, want %d", len(keys), len(allTypes))
	}
	for i, want := range allTypes {
		got, ok := f.Lookup(want.key)
		if !ok || !reflect.DeepEqual(got, want.value) || keys[i] != want.key {
			t.Errorf("key %d is %q, %s = %#v (%T), want %#v", i, keys[i], want.key, got, got, want.value)
		}
	}
	if f.Version() != 3 || f.Alignment() != 64 {
		t.Errorf("version %d, alignment %d", f.Version(), f.Alignment())
	}
	if _, ok := f.Lookup("absent"); ok {
		t.Error("an absent key was found")
	}
}

func TestMat(t *testing.T) {
	f := open(t, "testdata/all_types.gguf")
	for _, want := range []struct {
		name       string
		typ        tensor.DType
		rows, cols int
		elements   uint64
	}{
		{"vector", tensor.F32, 1, 5, 5},
		{"half", tensor.F16, 3, 4, 12},
		{"quant", tensor.Q8_0, 4, 64, 256},
		{"experts", tensor.F32, 6, 4, 24},
		{"ints", tensor.I32, 2, 3, 6},
	} {
		m, err := f.Mat(want.name)
		if err != nil {
			t.Fatal(err)
		}
		if m.Type != want.typ || m.Rows != want.rows || m.Cols != want.cols || len(m.Data) != m.Rows*m.Type.RowBytes(m.Cols) {
			t.Errorf("%s: %v %d x %d in %d bytes", want.name, m.Type, m.Rows, m.Cols, len(m.Data))
		}
		info, ok := f.Tensor(want.name)
		if !ok || info.Elements() != want.elements || int(info.Size) != len(m.Data) || info.Offset%64 != 0 {
			t.Errorf("%s: %+v", want.name, info)
		}
	}
	ints, _ := f.Mat("ints")
	for i := range 6 {
		if got := binary.LittleEndian.Uint32(ints.Data[4*i:]); got != uint32(i) {
			t.Errorf("value %d is %d", i, got)
		}
	}
	_, err := f.Mat("nobody")
	if want := `testdata/all_types.gguf: tensor "nobody": expected it in the file, found no tensor of that name`; err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("got error %v", err)
	}
}

func TestScalarTensor(t *testing.T) {
	b := gguf.NewBuilder()
	if err := b.AddTensor(gguf.TensorInfo{Name: "s", Type: tensor.F32}, gguf.Bytes{1, 2, 3, 4}); err != nil {
		t.Fatal(err)
	}
	f, err := gguf.OpenBytes("scalar", encode(t, b))
	if err != nil {
		t.Fatal(err)
	}
	m, err := f.Mat("s")
	if err != nil || m.Rows != 1 || m.Cols != 1 || !bytes.Equal(m.Data, []byte{1, 2, 3, 4}) {
		t.Errorf("got %+v, %v", m, err)
	}
}

func TestGetters(t *testing.T) {
	f := open(t, "testdata/all_types.gguf")
	for _, c := range []struct{ got, want any }{
		{f.String("t.string", ""), "naïve \U0001f600\n"},
		{f.String("absent", "def"), "def"},
		{f.Bool("t.true", false), true},
		{f.Bool("t.false", true), false},
		{f.Bool("absent", true), true},
		{f.Uint("t.uint8", 1), uint64(200)},
		{f.Uint("t.uint16", 1), uint64(60000)},
		{f.Uint("t.uint32", 1), uint64(4000000000)},
		{f.Uint("t.uint64", 1), uint64(1<<63 + 5)},
		{f.Uint("absent", 7), uint64(7)},
		{f.Float("t.float32", 0), 0.15625},
		{f.Float("t.float64", 0), 1e-300},
		{f.Float("t.int16", 0), -30000.0},
		{f.Float("t.uint64", 0), float64(1<<63 + 5)},
		{f.Float("absent", 0.5), 0.5},
		{f.Err(), error(nil)},
	} {
		if c.got != c.want {
			t.Errorf("got %v, want %v", c.got, c.want)
		}
	}
	for _, c := range []struct {
		use  func(f *gguf.File) any
		def  any
		want string
	}{
		{func(f *gguf.File) any { return f.Uint("t.int8", 9) }, uint64(9), `metadata "t.int8": expected an integer of at least 0, found int8 -100`},
		{func(f *gguf.File) any { return f.Uint("t.float32", 9) }, uint64(9), `metadata "t.float32": expected an integer of at least 0, found float32 0.15625`},
		{func(f *gguf.File) any { return f.Uint("a.int32", 9) }, uint64(9), `metadata "a.int32": expected an integer of at least 0, found an array of int32`},
		{func(f *gguf.File) any { return f.String("t.uint8", "d") }, "d", `metadata "t.uint8": expected a string, found uint8 200`},
		{func(f *gguf.File) any { return f.Bool("t.uint8", true) }, true, `metadata "t.uint8": expected a bool, found uint8 200`},
		{func(f *gguf.File) any { return f.Float("general.architecture", 2) }, 2.0, `metadata "general.architecture": expected a number, found string "llama"`},
	} {
		f := open(t, "testdata/all_types.gguf")
		if got := c.use(f); got != c.def {
			t.Errorf("got %v, want %v", got, c.def)
		}
		f.String("t.true", "") // only the first is reported
		if err := f.Err(); err == nil || err.Error() != "gguf: testdata/all_types.gguf: "+c.want {
			t.Errorf("got error %v\nwant %s", err, c.want)
		}
	}
}

// digests.json holds what the gguf Python package reads in the real files.
type digest struct {
	Version         int
	Keys            int
	MetadataSHA256  string `json:"metadata_sha256"`
	Tensors         int
	DirectorySHA256 string `json:"directory_sha256"`
	LastTensor      string `json:"last_tensor"`
	LastDataSHA256  string `json:"last_data_sha256"`
}

func TestDigests(t *testing.T) {
	var want map[string]digest
	b, err := os.ReadFile("testdata/digests.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &want); err != nil {
		t.Fatal(err)
	}
	find := map[string]func(t *testing.T) string{
		"all_types.gguf":                  func(*testing.T) string { return "testdata/all_types.gguf" },
		"SmolLM2-135M-Instruct.Q4_1.gguf": func(t *testing.T) string { return testdata.Model(t, "smollm2") },
		"gemma-3-270m-q4_k_m.gguf":        func(t *testing.T) string { return testdata.Model(t, "gemma3") },
		"qwen-0.5b.gguf":                  func(t *testing.T) string { return testdata.Model(t, "qwen") },
	}
	for name, w := range want {
		t.Run(name, func(t *testing.T) {
			path := ""
			if f := find[name]; f != nil {
				path = f(t)
			} else {
				path = testdata.File(t, "tokenizers/"+name)
			}
			if got := digestOf(t, open(t, path)); got != w {
				t.Errorf("got  %+v\nwant %+v", got, w)
			}
		})
	}
}

func digestOf(t *testing.T, f *gguf.File) digest {
	d := digest{Version: f.Version(), Keys: len(f.Keys()), Tensors: len(f.Tensors())}
	h := sha256.New()
	for _, k := range f.Keys() {
		v, _ := f.Lookup(k)
		types, n := describe(reflect.ValueOf(v))
		fmt.Fprintf(h, "%s %s %d\n", k, types, n)
		writeValues(t, h, v)
	}
	d.MetadataSHA256 = hex.EncodeToString(h.Sum(nil))
	h.Reset()
	for _, t := range f.Tensors() {
		dims := strings.Trim(fmt.Sprint(t.Dims), "[]")
		fmt.Fprintf(h, "%s %v %s %d %d\n", t.Name, t.Type, dims, t.Offset, t.Size)
	}
	d.DirectorySHA256 = hex.EncodeToString(h.Sum(nil))
	if d.Tensors > 0 {
		last := f.Tensors()[d.Tensors-1]
		sum := sha256.Sum256(f.Data(last))
		d.LastTensor, d.LastDataSHA256 = last.Name, hex.EncodeToString(sum[:])
	}
	return d
}

// describe returns the types of a value from outside in and the number of
// scalars in it.
func describe(v reflect.Value) (string, int) {
	if v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	if v.Kind() != reflect.Slice {
		return v.Type().String(), 1
	}
	if v.Type().Elem().Kind() != reflect.Interface {
		return "array/" + v.Type().Elem().String(), v.Len()
	}
	types, total := "", 0
	for i := range v.Len() {
		inner, n := describe(v.Index(i))
		types, total = "array/"+inner, total+n
	}
	return types, total
}

func writeValues(t *testing.T, h hash.Hash, v any) {
	var buf []byte
	double := func(x float64) { buf = binary.LittleEndian.AppendUint64(buf, math.Float64bits(x)) }
	switch x := v.(type) {
	case string:
		buf = append(append(buf, x...), '\n')
	case []string:
		for _, s := range x {
			buf = append(append(buf, s...), '\n')
		}
	case float32:
		double(float64(x))
	case float64:
		double(x)
	case []float32:
		for _, e := range x {
			double(float64(e))
		}
	case []float64:
		for _, e := range x {
			double(e)
		}
	case bool:
		buf = append(buf, map[bool]string{false: "0\n", true: "1\n"}[x]...)
	case []bool:
		for _, e := range x {
			writeValues(t, h, e)
		}
	case []any:
		for _, e := range x {
			writeValues(t, h, e)
		}
	default:
		rv := reflect.ValueOf(v)
		if rv.Kind() != reflect.Slice {
			buf = fmt.Appendln(buf, v)
			break
		}
		for i := range rv.Len() {
			buf = fmt.Appendln(buf, rv.Index(i).Interface())
		}
	}
	h.Write(buf)
}

func TestOpenErrors(t *testing.T) {
	dir := t.TempDir()
	absent := filepath.Join(dir, "absent.gguf")
	if _, err := gguf.Open(absent); err == nil || !os.IsNotExist(unwrapAll(err)) || strings.Count(err.Error(), absent) != 1 {
		t.Errorf("absent file: got %v", err)
	}
	if _, err := gguf.Open(dir); err == nil || err.Error() != "gguf: "+dir+": open: not a regular file" {
		t.Errorf("folder: got %v", err)
	}
}

func unwrapAll(err error) error {
	for {
		u, ok := err.(interface{ Unwrap() error })
		if !ok {
			return err
		}
		err = u.Unwrap()
	}
}

func TestClose(t *testing.T) {
	f, err := gguf.Open("testdata/all_types.gguf")
	if err != nil {
		t.Fatal(err)
	}
	f.Prefetch()
	f.DropPages()
	m, err := f.Mat("ints")
	if err != nil || m.Data[4] != 1 {
		t.Errorf("after DropPages: %v, %v", m.Data, err)
	}
	for range 2 {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
	f.DropPages()
	if s := f.String("t.string", ""); s != "naïve \U0001f600\n" {
		t.Errorf("metadata is %q after Close", s)
	}
}

// open opens path and closes it after the test.
func open(t testing.TB, path string) *gguf.File {
	t.Helper()
	f, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

func encode(t testing.TB, b *gguf.Builder) []byte {
	t.Helper()
	var buf bytes.Buffer
	n, err := b.WriteTo(&buf)
	if err != nil {
		t.Fatal(err)
	}
	if n != int64(buf.Len()) {
		t.Errorf("WriteTo says %d bytes, wrote %d", n, buf.Len())
	}
	return buf.Bytes()
}

func BenchmarkOpen(b *testing.B) {
	for _, name := range []string{"smollm2", "gemma3", "qwen"} {
		b.Run(name, func(b *testing.B) {
			path := testdata.Model(b, name)
			b.ReportAllocs()
			for b.Loop() {
				f, err := gguf.Open(path)
				if err != nil {
					b.Fatal(err)
				}
				f.Close()
			}
		})
	}
}

// TestOpenMemory bounds what a vocabulary of 262144 tokens costs: the time to
// the first token of a model begins with it.
func TestOpenMemory(t *testing.T) {
	path := testdata.Model(t, "gemma3")
	var f *gguf.File
	allocs := testing.AllocsPerRun(1, func() { f = open(t, path) })
	if most := float64(3*len(f.Tensors()) + 10*len(f.Keys())); allocs > most {
		t.Errorf("%v allocations, want at most %v", allocs, most)
	}
}
