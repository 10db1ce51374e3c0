package hub

import (
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// This file finds single models and safetensors folders by path, and brings
// the caches of other programs together; one file each reads them.

// cacheHome is where programs keep what can be fetched again.
func cacheHome() string {
	if d := os.Getenv("XDG_CACHE_HOME"); filepath.IsAbs(d) {
		return d
	}
	return filepath.Join(homeDir(), ".cache")
}

// localFile is a file of a cache, with its name inside a repository.
type localFile struct {
	name string
	path string
	size int64
	mod  time.Time
	sum  string // sha256 if the cache's layout tells it
}

// findCached looks for an explicit reference in the other programs' caches.
func findCached(r reference) *Model {
	switch r.kind {
	case kindHF:
		m := findHF(r)
		if m == nil && r.short != "" {
			m = findOllama(reference{kind: kindBare, text: r.short})
		}
		return m
	case kindOllama:
		return findOllama(r)
	}
	return nil
}

// findHF looks for a Hugging Face reference in all caches that hold such.
func findHF(r reference) *Model {
	for _, root := range hfRoots() {
		if m := hfCached(root, r); m != nil {
			return m
		}
	}
	if r.rev != "" { // the others do not know revisions
		return nil
	}
	for _, place := range []struct {
		files []localFile
		owner Owner
	}{{llamaFlatRepo(r.repo), OwnerLlamaCpp}, {lmStudioRepo(r.repo), OwnerLMStudio}} {
		if m := pickLocal(place.files, r.sel, r.text, place.owner); m != nil {
			return m
		}
	}
	return findOllamaHF(r)
}

// listCached returns the models in other programs' caches.
func listCached() []Model {
	var out []Model
	for _, root := range hfRoots() {
		out = append(out, listHF(root)...)
	}
	out = append(out, listLlamaFlat()...)
	out = append(out, listOllama()...)
	out = append(out, listLMStudio()...)
	slices.SortStableFunc(out, func(a, b Model) int { return strings.Compare(string(a.Owner)+a.Name, string(b.Owner)+b.Name) })
	seen := map[string]bool{}
	return slices.DeleteFunc(out, func(m Model) bool {
		dup := seen[m.Path()]
		seen[m.Path()] = true
		return dup
	})
}

// pickLocal chooses among a repository's files on disk what sel means.
func pickLocal(files []localFile, sel, ref string, owner Owner) *Model {
	if len(files) == 0 {
		return nil
	}
	names := make([]string, len(files))
	byName := map[string]localFile{}
	for i, f := range files {
		names[i], byName[f.name] = f.name, f
	}
	chosen, open, err := hfPick(names, sel)
	if err != nil {
		return nil
	}
	m := &Model{Name: ref, Ref: ref, Source: string(owner), Owner: owner}
	if open == "." {
		m.Files = []string{filepath.Dir(byName["config.json"].path)}
		if !weightsComplete(m.Files[0]) {
			return nil
		}
	} else {
		m.Quant = quantOf(chosen[0])
	}
	for _, n := range chosen {
		f := byName[n]
		m.Files = append(m.Files, f.path)
		m.Size += f.size
		if f.mod.After(m.Modified) {
			m.Modified = f.mod
		}
	}
	if len(chosen) == 1 {
		m.SHA256 = byName[chosen[0]].sum
	}
	return m
}

// groupLocal makes a list entry of each model among a repository's files. ref
// names the model of a file or folder, given the file's name or "".
func groupLocal(files []localFile, owner Owner, ref func(name string) string) []Model {
	var out []Model
	for _, f := range files {
		if !isModelGGUF(f.name) {
			continue
		}
		if m := shardName.FindStringSubmatch(f.name); m != nil && m[2] != "00001" {
			continue
		}
		if m := pickLocal(files, f.name, ref(f.name), owner); m != nil {
			out = append(out, *m)
		}
	}
	if m := pickLocal(files, "safetensors", ref(""), owner); m != nil {
		out = append(out, *m)
	}
	return out
}

// walkFiles lists the regular files below dir (links to files count), by name
// relative to dir, not deeper than depth folders.
func walkFiles(dir string, depth int) []localFile {
	var out []localFile
	var walk func(rel string, depth int)
	walk = func(rel string, depth int) {
		entries, err := os.ReadDir(filepath.Join(dir, filepath.FromSlash(rel)))
		if err != nil {
			return
		}
		for _, e := range entries {
			name := path.Join(rel, e.Name())
			p := filepath.Join(dir, filepath.FromSlash(name))
			fi, err := os.Stat(p) // follows links
			switch {
			case err != nil:
			case fi.IsDir() && depth > 0:
				walk(name, depth-1)
			case fi.Mode().IsRegular():
				out = append(out, localFile{name: name, path: p, size: fi.Size(), mod: fi.ModTime()})
			}
		}
	}
	walk("", depth)
	return out
}

// openLocal describes a model that the user named by its path.
func openLocal(p string) (*Model, error) {
	fi, err := os.Stat(p)
	if os.IsNotExist(err) {
		return nil, fmt.Errorf("hub: %s: no such file or folder: %w", p, ErrNotFound)
	}
	if err != nil {
		return nil, fmt.Errorf("hub: %w", err)
	}
	m := &Model{Name: p, Ref: p, Source: string(OwnerUser), Owner: OwnerUser, Modified: fi.ModTime()}
	if fi.IsDir() {
		return openLocalDir(m, p)
	}
	names := []string{p}
	if strings.HasSuffix(p, ".gguf") {
		if names, err = shardsOf(p); err != nil {
			return nil, fmt.Errorf("hub: %w", err)
		}
	} else if filepath.Ext(p) == ".safetensors" || filepath.Base(p) == "model.safetensors.index.json" {
		return openLocalDir(m, filepath.Dir(p))
	} else if err := checkMagic(p); err != nil {
		return nil, fmt.Errorf("hub: %s: neither a GGUF nor a safetensors model: %w", p, err)
	}
	for _, n := range names {
		fi, err := os.Stat(n)
		if err != nil {
			return nil, fmt.Errorf("hub: %s: split file is incomplete: %w", p, err)
		}
		m.Size += fi.Size()
	}
	m.Files, m.Quant = names, quantOf(filepath.Base(p))
	return m, nil
}

// openLocalDir accepts a safetensors folder, or a folder with one GGUF model.
func openLocalDir(m *Model, dir string) (*Model, error) {
	files := walkFiles(dir, 0)
	names := make([]string, len(files))
	for i, f := range files {
		names[i] = f.name
	}
	if parts := pickSafetensors(names); parts != nil {
		if !weightsComplete(dir) {
			return nil, fmt.Errorf("hub: %s: files that model.safetensors.index.json names are missing", dir)
		}
		m.Files = []string{dir}
		for _, f := range files {
			if isSafetensorsPart(f.name) {
				m.Files = append(m.Files, f.path)
				m.Size += f.size
			}
		}
		return m, nil
	}
	models := groupLocal(files, OwnerUser, func(string) string { return dir })
	switch len(models) {
	case 1:
		return &models[0], nil
	case 0:
		return nil, fmt.Errorf("hub: %s: expected a GGUF file, or config.json and *.safetensors: found %s", dir, brief(names))
	}
	var paths []string
	for _, m := range models {
		paths = append(paths, filepath.Base(m.Path()))
	}
	return nil, fmt.Errorf("hub: %s: several models, name one: %s", dir, brief(paths))
}

// weightsComplete checks that all files that an index names are there.
func weightsComplete(dir string) bool {
	b, err := readSmall(filepath.Join(dir, "model.safetensors.index.json"), 64<<20)
	if err != nil {
		return os.IsNotExist(err)
	}
	var index struct {
		WeightMap map[string]string `json:"weight_map"`
	}
	if json.Unmarshal(b, &index) != nil {
		return false
	}
	checked := map[string]bool{}
	for _, f := range index.WeightMap {
		if checked[f] {
			continue
		}
		checked[f] = true
		if safeName(f) != nil {
			return false
		}
		if _, err := os.Stat(filepath.Join(dir, filepath.FromSlash(f))); err != nil {
			return false
		}
	}
	return true
}

// llamaCacheDir is llama.cpp's folder of flat file names.
func llamaCacheDir() string {
	if d := os.Getenv("LLAMA_CACHE"); d != "" {
		return d
	}
	switch runtime.GOOS {
	case "windows":
		return filepath.Join(os.Getenv("LOCALAPPDATA"), "llama.cpp")
	case "darwin":
		return filepath.Join(homeDir(), "Library", "Caches", "llama.cpp")
	}
	return filepath.Join(cacheHome(), "llama.cpp")
}
