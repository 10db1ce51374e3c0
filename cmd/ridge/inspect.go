package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"text/tabwriter"

	"ridge/hub"
	"ridge/internal/builtin"
	"ridge/weights/gguf"
	"ridge/weights/safetensors"
)

// inspection is what a file says of itself.
type inspection struct {
	File     string         `json:"file"`
	Format   string         `json:"format"`
	Version  int            `json:"version,omitempty"`
	Metadata []metadataItem `json:"metadata"`
	Tensors  []tensorItem   `json:"tensors"`
}

type metadataItem struct {
	Key   string `json:"key"`
	Type  string `json:"type"`
	Value any    `json:"value"`
}

type tensorItem struct {
	Name   string   `json:"name"`
	Type   string   `json:"type"`
	Shape  []uint64 `json:"shape"`
	Offset uint64   `json:"offset"`
	Bytes  uint64   `json:"bytes"`
}

// inspect reads the directory of a file, or of the model of a name. Long arrays
// are kept whole if full is set.
func inspect(path string, full bool) (*inspection, error) {
	info, err := os.Stat(path)
	if err != nil {
		m, err := hub.Find(path, hub.Options{Offline: true})
		if err != nil {
			return nil, err
		}
		path = m.Path()
	}
	if isGGUF(path) {
		return inspectGGUF(path, full)
	}
	f, err := safetensors.Open(path)
	if err != nil && info != nil && info.Mode().IsRegular() && !strings.Contains(strings.ToLower(filepath.Base(path)), ".safetensors") { // nor an index of such
		return nil, fmt.Errorf("%s: expected a GGUF or safetensors file, and it begins as neither", path)
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	in := &inspection{File: path, Format: "safetensors"}
	for k, v := range f.Metadata() {
		in.Metadata = append(in.Metadata, metadataItem{k, "string", v})
	}
	for _, t := range f.Tensors() {
		shape := make([]uint64, len(t.Shape))
		for i, n := range t.Shape {
			shape[i] = uint64(n)
		}
		in.Tensors = append(in.Tensors, tensorItem{t.Name, t.Type, shape, uint64(t.Offset), uint64(t.Size)})
	}
	return in, nil
}

// isGGUF looks at a file's name and at its first bytes.
func isGGUF(path string) bool {
	if builtin.Is(path) {
		return true
	}
	if strings.EqualFold(filepath.Ext(path), ".gguf") {
		return true
	}
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	var magic [4]byte
	_, err = io.ReadFull(f, magic[:])
	return err == nil && bytes.Equal(magic[:], []byte("GGUF"))
}

func inspectGGUF(path string, full bool) (*inspection, error) {
	f, err := gguf.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	in := &inspection{File: path, Format: "GGUF", Version: f.Version()}
	for _, k := range f.Keys() {
		v, _ := f.Lookup(k)
		item := metadataItem{k, reflect.TypeOf(v).String(), v}
		if !full {
			item.Value = brief(v)
		}
		in.Metadata = append(in.Metadata, item)
	}
	for _, t := range f.Tensors() {
		in.Tensors = append(in.Tensors, tensorItem{t.Name, t.Type.String(), t.Dims, t.Offset, t.Size})
	}
	return in, nil
}

// briefLength is how much of a long value is printed.
const briefLength = 80

// brief shortens what would fill screens.
func brief(v any) any {
	if r := reflect.ValueOf(v); r.Kind() == reflect.Slice && r.Len() > 4 {
		return fmt.Sprintf("%v … (%d in all)", r.Slice(0, 4).Interface(), r.Len())
	}
	if s, ok := v.(string); ok {
		if r := []rune(s); len(r) > briefLength {
			return fmt.Sprintf("%s … (%d characters in all)", string(r[:briefLength]), len(r))
		}
	}
	return v
}

func (in *inspection) write(w io.Writer) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(tw, "%s, %s", in.File, in.Format)
	if in.Version > 0 {
		fmt.Fprintf(tw, " version %d", in.Version)
	}
	fmt.Fprintf(tw, ", %d metadata entries, %d tensors\n\n", len(in.Metadata), len(in.Tensors))
	for _, m := range in.Metadata {
		value := fmt.Sprintf("%v", m.Value)
		if m.Type == "string" {
			value = fmt.Sprintf("%q", m.Value)
		}
		fmt.Fprintf(tw, "%s\t%s\t%s\n", m.Key, m.Type, value)
	}
	fmt.Fprintln(tw)
	for _, t := range in.Tensors {
		fmt.Fprintf(tw, "%s\t%s\t%v\tat %d\t%d bytes\n", t.Name, t.Type, t.Shape, t.Offset, t.Bytes)
	}
	return tw.Flush()
}
