package packfile

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

const (
	suffix   = ".packed"
	lockName = ".lock"
)

// Dir returns the folder for files of this user, below the one that the system
// has for caches; "" if it has none.
func Dir() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "ridge", "packed")
}

// Path returns the place in dir of the file for the model at path, the file or
// folder to open. However the model is reached, by links or from another working
// directory, it is the same.
func Path(dir, model string) string {
	model = whole(model)
	name := []byte(filepath.Base(model))
	for i, c := range name {
		if c < ' ' || c > '~' || strings.IndexByte(`/\:*?"<>|`, c) >= 0 {
			name[i] = '_'
		}
	}
	h := sha256.Sum256([]byte(model))
	return filepath.Join(dir, string(name[:min(len(name), 80)])+"-"+hex.EncodeToString(h[:6])+suffix)
}

// whole returns the one path of a model.
func whole(model string) string {
	if abs, err := filepath.Abs(model); err == nil {
		model = abs
	}
	if real, err := filepath.EvalSymlinks(model); err == nil {
		model = real
	}
	return model
}

// Kept returns the bytes that the file for the model at path takes, 0 if there
// is none.
func Kept(dir, model string) int64 {
	if dir == "" {
		return 0
	}
	st, err := os.Stat(Path(dir, model))
	if err != nil {
		return 0
	}
	return st.Size()
}

// Remove deletes the file for the model at path, and reports whether there was
// one. Processes that use it go on.
func Remove(dir, model string) (bool, error) {
	if dir == "" {
		return false, nil
	}
	err := os.Remove(Path(dir, model))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// Listed is a file of a folder.
type Listed struct {
	Path  string `json:"path"`
	Model string `json:"model,omitempty"` // "" if the file is damaged
	Size  int64  `json:"size"`            // of the file
	Error string `json:"error,omitempty"` // why it is damaged
}

// List returns the files in dir.
func List(dir string) []Listed {
	var out []Listed
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		st, err := e.Info()
		if err != nil || !st.Mode().IsRegular() || filepath.Ext(e.Name()) != suffix {
			continue
		}
		l := Listed{Path: filepath.Join(dir, e.Name()), Size: st.Size()}
		if f, err := Open(l.Path); err != nil {
			l.Error = err.Error()
		} else {
			l.Model = f.Model
			f.Close()
		}
		out = append(out, l)
	}
	return out
}

// sweep removes the files in dir that are of no use: damaged ones, and those
// whose model is gone.
func sweep(dir string) {
	for _, l := range List(dir) {
		if l.Error == "" {
			if _, err := os.Stat(l.Model); !errors.Is(err, fs.ErrNotExist) {
				continue
			}
		}
		os.Remove(l.Path)
	}
}
