package hub

import (
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// Ollama keeps manifests/<host>/<namespace>/<name>/<tag>, JSON like that of its
// registry, and blobs/sha256-<hex>; the blob of the model layer is a GGUF file.

func ollamaDirs() []string {
	if d := os.Getenv("OLLAMA_MODELS"); d != "" {
		return []string{d}
	}
	dirs := []string{filepath.Join(homeDir(), ".ollama", "models")}
	if runtime.GOOS == "linux" { // of the service, if this user may read it
		dirs = append(dirs, "/usr/share/ollama/.ollama/models", "/var/lib/ollama/.ollama/models", "/var/lib/ollama/models",
			"/var/snap/ollama/common/models")
	}
	return dirs
}

// findOllama looks for a reference, or for a name as Ollama writes it.
func findOllama(r reference) *Model {
	if r.kind == kindBare {
		var err error
		if r, err = parseOllama(r.text, r.text); err != nil {
			return nil
		}
	}
	for _, dir := range ollamaDirs() {
		p := pathOnDisk(filepath.Join(dir, "manifests"), r.host, r.model, r.tag)
		if p == "" {
			continue
		}
		if m := openOllama(dir, p, r.text); m != nil {
			return m
		}
	}
	return nil
}

// findOllamaHF looks for a model of the Hugging Face hub that Ollama pulled:
// hf.co/org/repo, with the quantization as its tag.
func findOllamaHF(r reference) *Model {
	if r.rev != "" || isFileSel(r.sel) {
		return nil
	}
	tag := r.sel
	if tag == "" {
		tag = "latest"
	}
	for _, host := range []string{"hf.co", "huggingface.co"} {
		m := findOllama(reference{kind: kindOllama, text: r.text, host: host, model: r.repo, tag: tag})
		if m != nil {
			return m
		}
	}
	return nil
}

// pathOnDisk joins slash-separated names to dir as they are written there:
// Ollama does not care for their case. It returns "" if there is nothing.
func pathOnDisk(dir string, names ...string) string {
	p := filepath.Join(dir, filepath.FromSlash(path.Join(names...)))
	if _, err := os.Stat(p); err == nil {
		return p
	}
	for name := range strings.SplitSeq(path.Join(names...), "/") {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return ""
		}
		i := slices.IndexFunc(entries, func(e os.DirEntry) bool { return strings.EqualFold(e.Name(), name) })
		if i < 0 {
			return ""
		}
		dir = filepath.Join(dir, entries[i].Name())
	}
	return dir
}

// openOllama reads one manifest; nil if it or its blob is not usable.
func openOllama(dir, manifestPath, ref string) *Model {
	b, err := readSmall(manifestPath, 4<<20)
	if err != nil {
		return nil
	}
	mf, err := parseOllamaManifest(b)
	if err != nil {
		return nil
	}
	layer, err := mf.model()
	if err != nil {
		return nil
	}
	sum, err := layer.sum()
	if err != nil {
		return nil
	}
	blob := filepath.Join(dir, "blobs", "sha256-"+sum)
	fi, err := os.Stat(blob)
	if err != nil || fi.Size() != layer.Size {
		return nil
	}
	m := &Model{Name: ref, Ref: ref, Files: []string{blob}, Source: string(OwnerOllama), Owner: OwnerOllama,
		Size: fi.Size(), SHA256: sum, Modified: fi.ModTime()}
	if csum, err := mf.Config.sum(); err == nil {
		if b, err := readSmall(filepath.Join(dir, "blobs", "sha256-"+csum), 1<<20); err == nil {
			m.Quant = ollamaQuant(b)
		}
	}
	if l, ok := mf.layer("license"); ok {
		if lsum, err := l.sum(); err == nil {
			if b, err := readSmall(filepath.Join(dir, "blobs", "sha256-"+lsum), 1<<20); err == nil {
				m.License = licenseTitle(b)
			}
		}
	}
	return m
}

// ollamaFound is a manifest in the folder dir of Ollama, of the model ref.
type ollamaFound struct {
	dir, path, ref string
}

// ollamaManifests yields the manifests of Ollama that are on this machine.
func ollamaManifests(yield func(ollamaFound) bool) {
	for _, dir := range ollamaDirs() {
		for _, f := range walkFiles(filepath.Join(dir, "manifests"), 3) {
			parts := strings.Split(f.name, "/")
			if len(parts) != 4 {
				continue
			}
			r, err := parseOllama(f.name, strings.Join(parts[:3], "/")+":"+parts[3])
			if err == nil && !yield(ollamaFound{dir, f.path, r.text}) {
				return
			}
		}
	}
}

func listOllama() (out []Model) {
	for f := range ollamaManifests {
		if m := openOllama(f.dir, f.path, f.ref); m != nil {
			out = append(out, *m)
		}
	}
	return out
}
