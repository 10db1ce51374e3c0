package model

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"ridge/weights/safetensors"
)

// checkpoint is the tensors of a tiny model's directory, to be changed.
type checkpoint struct{ tensors []safetensors.Tensor }

// set gives a tensor float32 values, in place of those that it has.
func (c *checkpoint) set(name string, shape []int, values []float32) {
	c.remove(name)
	var data bytes.Buffer
	binary.Write(&data, binary.LittleEndian, values)
	var dims []uint64
	for _, n := range shape {
		dims = append(dims, uint64(n))
	}
	c.tensors = append(c.tensors, safetensors.Tensor{Name: name, Type: "F32", Shape: dims, Data: safetensors.Bytes(data.Bytes())})
}

func (c *checkpoint) remove(name string) {
	c.tensors = slices.DeleteFunc(c.tensors, func(t safetensors.Tensor) bool { return t.Name == name })
}

// copyCheckpoint copies the directory of a tiny model with changed keys of its
// config.json, nil for those that are taken out, and changed tensors. It returns
// the new directory.
func copyCheckpoint(t *testing.T, name string, keys map[string]any, change func(*checkpoint)) string {
	t.Helper()
	from, dir := filepath.Join(tinyModels, name), t.TempDir()
	raw, err := os.ReadFile(filepath.Join(from, "config.json"))
	if err != nil {
		t.Fatal(err)
	}
	var config map[string]any
	if err := json.Unmarshal(raw, &config); err != nil {
		t.Fatal(err)
	}
	for k, v := range keys {
		if config[k] = v; v == nil {
			delete(config, k)
		}
	}
	if raw, err = json.Marshal(config); err != nil {
		t.Fatal(err)
	}
	write := func(file string, b []byte) {
		if err := os.WriteFile(filepath.Join(dir, file), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("config.json", raw)
	for _, file := range []string{"tokenizer.json", "tokenizer_config.json"} {
		b, err := os.ReadFile(filepath.Join(from, file))
		if err != nil {
			t.Fatal(err)
		}
		write(file, b)
	}
	f, err := safetensors.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	c := &checkpoint{}
	for _, x := range f.Tensors() {
		c.tensors = append(c.tensors, safetensors.Tensor{Name: x.Name, Type: x.Type, Shape: x.Shape, Data: safetensors.Bytes(f.Data(x.Name))})
	}
	change(c)
	if err := safetensors.Write(filepath.Join(dir, "model.safetensors"), c.tensors, nil); err != nil {
		t.Fatal(err)
	}
	return dir
}
