package quantized

import (
	"encoding/json"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ridge/weights/safetensors"
	"ridge/weights/tensor"
)

// tensorsOf returns the tensors of a case, to be changed, and its configuration.
func tensorsOf(t testing.TB, dir string) ([]safetensors.Tensor, map[string]any) {
	t.Helper()
	st, err := safetensors.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	var all []safetensors.Tensor
	for _, x := range st.Tensors() {
		all = append(all, safetensors.Tensor{Name: x.Name, Type: x.Type, Shape: x.Shape, Data: safetensors.Bytes(st.Data(x.Name))})
	}
	var config map[string]any
	b, err := os.ReadFile(filepath.Join(dir, "config.json"))
	if err == nil {
		err = json.Unmarshal(b, &config)
	}
	if err != nil {
		t.Fatal(err)
	}
	return all, config
}

// readAll reads every weight of a checkpoint with other tensors, and returns the
// one of a name.
func readAll(t testing.TB, tensors []safetensors.Tensor, config map[string]any, name string) (m tensor.Mat, err error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "model.safetensors")
	if err := safetensors.Write(file, tensors, nil); err != nil {
		t.Fatal(err)
	}
	c, err := ReadConfig("", config)
	if err != nil {
		return m, err
	}
	st, err := safetensors.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	return readWeights(st, c, name)
}

func readWeights(st *safetensors.File, c *Config, name string) (m tensor.Mat, err error) {
	f, err := Open(st, c)
	if err != nil {
		return m, err
	}
	for _, x := range f.Tensors() {
		if f.weights[x.Name] == nil {
			continue
		}
		got, err := f.Mat(x.Name)
		if err != nil {
			return m, err
		}
		if x.Name == name {
			m = got
		}
	}
	return m, nil
}

// optional are tensors that weights are read without, if need be: the groups of
// columns that lie in order.
var optional = map[string][]string{".g_idx": {"gptq-4", "gptq-8", "gptq-2", "gptq-3", "gptq-4-128", "gptq-4-zeros-v2", "gptq-4-row-head"}, ".weight_format": {"bnb-int8"}}

// A checkpoint that lacks a tensor of a quantized weight, or has it in another
// shape or type, is refused, and a tensor of the weight named.
func TestEveryPartIsRequired(t *testing.T) {
	for _, dir := range cases(t) {
		tensors, config := tensorsOf(t, dir)
		f, tried := openCase(t, dir), ""
		for name, w := range f.weights {
			module := strings.TrimSuffix(name, ".weight")
			if kind := path.Ext(module); !strings.HasPrefix(kind, ".down_proj") || tried != "" {
				continue // all are read in the same way
			}
			tried = module
			if err := w.plan(); err != nil {
				t.Fatal(err)
			}
			tensors := slices.DeleteFunc(slices.Clone(tensors), func(x safetensors.Tensor) bool { return !strings.HasPrefix(x.Name, module) })
			for _, part := range w.parts {
				if slices.Contains(besides, strings.TrimPrefix(part, module+".")) {
					continue // it is not used
				}
				may := false
				for _, c := range optional[strings.TrimPrefix(part, module)] {
					may = may || c == filepath.Base(dir)
				}
				for _, how := range []string{"missing", "longer", "shorter", "type"} {
					changed, marker := change(tensors, part, how), false
					for _, x := range changed {
						n, ok := f.config.method.weight(safetensors.TensorInfo{Name: x.Name, Type: x.Type, Shape: x.Shape})
						marker = marker || ok && n == name
					}
					if x := info(changed, part); !marker || how == "missing" && may || how != "missing" && slices.Equal(x.Shape, info(tensors, part).Shape) {
						continue // it is no quantized weight any more: what is left of it is refused by package model
					}
					m, err := readAll(t, changed, config, name)
					if was := w.mat(); err == nil && (m.Rows != was.Rows || m.Cols != was.Cols) {
						continue // no layer takes it
					}
					if err == nil || !strings.Contains(err.Error(), module) {
						t.Errorf("%s: %s %s: %v", dir, part, how, err)
					}
				}
			}
		}
	}
}

// info returns the tensor of a name.
func info(tensors []safetensors.Tensor, name string) (x safetensors.Tensor) {
	for _, t := range tensors {
		if t.Name == name {
			x = t
		}
	}
	return x
}

// change returns tensors with one of them changed.
func change(tensors []safetensors.Tensor, name, how string) (out []safetensors.Tensor) {
	for _, x := range tensors {
		if x.Name == name {
			data := []byte(x.Data.(safetensors.Bytes))
			switch how {
			case "missing":
				continue
			case "longer":
				if len(x.Shape) == 0 {
					break
				}
				row := len(data) / int(x.Shape[0])
				x.Shape = append([]uint64{x.Shape[0] + 1}, x.Shape[1:]...)
				data = append(append([]byte(nil), data...), make([]byte, row)...)
			case "shorter":
				if len(x.Shape) == 0 || x.Shape[0] < 2 {
					break
				}
				data = data[:len(data)-len(data)/int(x.Shape[0])]
				x.Shape = append([]uint64{x.Shape[0] - 1}, x.Shape[1:]...)
			case "type":
				x.Type = "C64"
				x.Shape = []uint64{uint64(len(data) / 8)}
				data = data[:len(data)/8*8]
			}
			x.Data = safetensors.Bytes(data)
		}
		out = append(out, x)
	}
	return out
}

// Groups that are not there are refused.
func TestGroupIndexInRange(t *testing.T) {
	tensors, config := tensorsOf(t, "testdata/gptq-4-act")
	for i, x := range tensors {
		if strings.HasSuffix(x.Name, "layers.0.mlp.down_proj.g_idx") {
			data := append([]byte(nil), x.Data.(safetensors.Bytes)...)
			data[3] = 0x80
			tensors[i].Data = safetensors.Bytes(data)
		}
	}
	if _, err := readAll(t, tensors, config, ""); err == nil || !strings.Contains(err.Error(), "g_idx\": expected groups 0 to 2, found ") {
		t.Errorf("error %v", err)
	}
}

// Settings of the wrong kind are refused by their key.
func TestSettings(t *testing.T) {
	for _, c := range []struct {
		config string
		want   string
	}{
		{`{"quant_method": "gptq", "bits": 5}`, "bits: expected 2, 3, 4 or 8, found 5"},
		{`{"quant_method": "gptq", "bits": "4"}`, "bits: expected an integer, found 4"},
		{`{"quant_method": "gptq", "checkpoint_format": "marlin"}`, `checkpoint_format: expected gptq or gptq_v2, found "marlin"`},
		{`{"quant_method": "gptq", "group_size": 0}`, "group_size: expected -1 or a positive number, found 0"},
		{`{"quant_method": "gptq", "dynamic": 3}`, "dynamic: expected an object, found 3"},
		{`{"quant_method": "awq", "version": "gemv_fast"}`, `version: expected one of gemm, gemv, found "gemv_fast"`},
		{`{"quant_method": "awq", "bits": 8}`, "bits: expected 4, found 8"},
		{`{"quant_method": 7}`, "quant_method: expected a string, found 7"},
		{`{"bits": 4}`, "quant_method: expected one of "},
		{`{"quant_method": "torchao"}`, `quantization method "torchao"`},
		{`[]`, "quantization_config: expected an object"},
	} {
		var v any
		if err := json.Unmarshal([]byte(c.config), &v); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadConfig("", map[string]any{"quantization_config": v}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %s", c.config, err, c.want)
		}
	}
}

// FuzzOpen reads checkpoints of any bytes and settings: they are refused, or have
// values.
func FuzzOpen(f *testing.F) {
	for _, dir := range cases(f) {
		b, err := os.ReadFile(filepath.Join(dir, "model.safetensors"))
		if err != nil {
			f.Fatal(err)
		}
		_, config := tensorsOf(f, dir)
		q, err := json.Marshal(config["quantization_config"])
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b, string(q))
	}
	f.Fuzz(func(t *testing.T, b []byte, config string) {
		var values map[string]any
		if json.Unmarshal([]byte(config), &values) != nil {
			return
		}
		c, err := ReadConfig("", map[string]any{"quantization_config": values})
		if err != nil {
			return
		}
		st, err := safetensors.OpenBytes("fuzz", b)
		if err != nil {
			return
		}
		_, _ = readWeights(st, c, "")
	})
}

// BitNet's codes are 0, 1 and 2, a weight has one scale, and what is not packed is
// refused by its name.
func TestBitNetRefused(t *testing.T) {
	for want, change := range map[string]func(ts []safetensors.Tensor, q map[string]any){
		"expected ternary codes 0, 1 and 2": func(ts []safetensors.Tensor, q map[string]any) {
			i := slices.IndexFunc(ts, func(x safetensors.Tensor) bool { return x.Type == "U8" })
			b := slices.Clone([]byte(ts[i].Data.(safetensors.Bytes)))
			b[5] |= 3 << 2
			ts[i].Data = safetensors.Bytes(b)
		},
		"weight_scale\": expected one number": func(ts []safetensors.Tensor, q map[string]any) {
			i := slices.IndexFunc(ts, func(x safetensors.Tensor) bool { return strings.HasSuffix(x.Name, "weight_scale") })
			ts[i].Shape, ts[i].Data = []uint64{2}, safetensors.Bytes(make([]byte, 4))
		},
		"quantization_mode: expected offline": func(ts []safetensors.Tensor, q map[string]any) { q["quantization_mode"] = "online" },
		"use_rms_norm: expected false":        func(ts []safetensors.Tensor, q map[string]any) { q["use_rms_norm"] = true },
	} {
		tensors, config := tensorsOf(t, "testdata/bitnet-divided")
		change(tensors, config["quantization_config"].(map[string]any))
		if _, err := readAll(t, tensors, config, ""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("expected %q, found %v", want, err)
		}
	}
}
