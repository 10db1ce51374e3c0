package compress

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"ridge/internal/atomicfile"
)

// keptLayers keeps the tensors of finished layers in a folder, a file for each, so that a
// run that was ended goes on where it was.
type keptLayers struct {
	dir string
	key string // of the model, the text and the settings
}

// keptHeader is the first line of a file. The tensors' bytes follow, and then the
// SHA-256 of all before.
type keptHeader struct {
	Key     string       `json:"key"`
	Tensors []keptTensor `json:"tensors"`
	Rounded []Rounded    `json:"rounded"`
}

type keptTensor struct {
	Name  string `json:"name"`
	Bytes int    `json:"bytes"`
}

// keptKey says what finished layers depend on, as text.
func (p *Plan) keptKey(origin []provenance) string {
	h := sha256.New()
	for _, kv := range origin {
		fmt.Fprintf(h, "%s %v\n", kv.key, kv.value)
	}
	for _, r := range p.Rows {
		fmt.Fprintf(h, "%s %v %s %s %v\n", r.Name, r.Dims, r.From, r.To, r.Measured)
		if r.Measured {
			fmt.Fprintln(h, p.o.Importance.of(r.Name))
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

func (k *keptLayers) path(layer int) string {
	return filepath.Join(k.dir, fmt.Sprintf("layer-%04d.kept", layer))
}

// save keeps a layer.
func (k *keptLayers) save(layer int, tensors map[string][]byte, rounded []Rounded) error {
	h := keptHeader{Key: k.key, Rounded: rounded}
	for _, name := range slices.Sorted(maps.Keys(tensors)) {
		h.Tensors = append(h.Tensors, keptTensor{name, len(tensors[name])})
	}
	head, err := json.Marshal(h)
	if err != nil {
		return fmt.Errorf("compress: %s: %w", k.path(layer), err)
	}
	if err := os.MkdirAll(k.dir, 0o777); err != nil {
		return fmt.Errorf("compress: %w", err)
	}
	return atomicfile.Write(k.path(layer), func(w io.Writer) error {
		sum := sha256.New()
		all := io.MultiWriter(w, sum)
		if _, err := all.Write(append(head, '\n')); err != nil {
			return err
		}
		for _, t := range h.Tensors {
			if _, err := all.Write(tensors[t.Name]); err != nil {
				return err
			}
		}
		_, err := w.Write(sum.Sum(nil))
		return err
	})
}

// load returns what was kept of a layer, nil tensors if nothing was or if the file is
// damaged. A file of another model or of other settings is an error.
func (k *keptLayers) load(layer int) (tensors map[string][]byte, rounded []Rounded, err error) {
	b, err := os.ReadFile(k.path(layer))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil, nil
	case err != nil:
		return nil, nil, fmt.Errorf("compress: %w", err)
	case len(b) < sha256.Size:
		return nil, nil, nil
	}
	b, sum := b[:len(b)-sha256.Size], b[len(b)-sha256.Size:]
	if got := sha256.Sum256(b); !bytes.Equal(got[:], sum) {
		return nil, nil, nil
	}
	var h keptHeader
	head, data, _ := bytes.Cut(b, []byte("\n"))
	if err := json.Unmarshal(head, &h); err != nil {
		return nil, nil, nil
	}
	if h.Key != k.key {
		return nil, nil, fmt.Errorf("compress: %s: expected a layer of this model, text and settings, found one of others: name another folder", k.path(layer))
	}
	tensors = map[string][]byte{}
	for _, t := range h.Tensors {
		if t.Bytes < 0 || t.Bytes > len(data) {
			return nil, nil, nil
		}
		tensors[t.Name], data = data[:t.Bytes:t.Bytes], data[t.Bytes:]
	}
	return tensors, h.Rounded, nil
}

// clear removes all layers, and the folder if nothing else is in it.
func (k *keptLayers) clear() error {
	files, err := filepath.Glob(filepath.Join(k.dir, "layer-*.kept"))
	for _, f := range files {
		err = errors.Join(err, os.Remove(f))
	}
	atomicfile.Sweep(k.dir)
	os.Remove(k.dir)
	return err
}
