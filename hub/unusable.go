package hub

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Unusable returns what looks like models on this machine and is none, since
// files are missing: interrupted downloads, split files of which a part is gone,
// links into nowhere. Problem says what is missing. List has none of them.
func Unusable(o Options) []Model {
	out := store{o.dir()}.unusable()
	for _, root := range hfRoots() {
		for dir, repo := range hfRepos(root) {
			for _, s := range hfSnapshots(dir) {
				out = append(out, brokenLocal(s, 4, OwnerHF, hfRefOf(repo))...)
			}
		}
	}
	out = append(out, brokenOllama()...)
	for dir, repo := range lmStudioRepos {
		out = append(out, brokenLocal(dir, 1, OwnerLMStudio, hfRefOf(repo))...)
	}
	out = append(out, brokenLocal(llamaCacheDir(), 0, OwnerLlamaCpp, func(name string) string { return filepath.Join(llamaCacheDir(), name) })...)
	slices.SortStableFunc(out, func(a, b Model) int { return strings.Compare(string(a.Owner)+a.Name, string(b.Owner)+b.Name) })
	return slices.CompactFunc(out, func(a, b Model) bool { return a.Name == b.Name && a.Owner == b.Owner })
}

// unusable lists the store's folders that hold no whole model.
func (s store) unusable() (out []Model) {
	entries, _ := os.ReadDir(s.root)
	for _, e := range entries {
		dir := filepath.Join(s.root, e.Name())
		if m, err := readManifest(filepath.Join(dir, manifestName)); err == nil && slug(m.Ref) == e.Name() {
			if _, err := m.model(dir); err != nil {
				out = append(out, Model{Name: m.Ref, Ref: m.Ref, License: m.License, Quant: m.Quant, Owner: OwnerRidge, Problem: missing(err)})
			}
			continue
		}
		if slices.ContainsFunc(walkFiles(dir, 4), func(f localFile) bool { return strings.HasSuffix(f.name, incompleteSuffix) }) {
			name := s.nameOf(e.Name())
			out = append(out, Model{Name: name, Ref: name, Owner: OwnerRidge, Problem: "its download is not complete: ridge pull goes on with it"})
		}
	}
	return out
}

// nameOf is the name of the model with that folder, as far as it can be
// told without a manifest.
func (s store) nameOf(folder string) string {
	if m, err := readManifest(filepath.Join(s.root, folder, journalName)); err == nil {
		return m.Ref
	}
	for _, e := range loadCatalog() {
		if slug(e.Name) == folder {
			return e.Name
		}
	}
	return filepath.Join(s.root, folder)
}

// missing says what an error of a file means for a model.
func missing(err error) string {
	if pe, ok := err.(*os.PathError); ok {
		return filepath.Base(pe.Path) + " is missing"
	}
	return err.Error()
}

// brokenLocal finds in a repository's folder what its files say that there
// should be. ref names a model, given its file or "".
func brokenLocal(dir string, depth int, owner Owner, ref func(string) string) (out []Model) {
	add := func(name, problem string) {
		out = append(out, Model{Name: ref(name), Ref: ref(name), Quant: quantOf(name), Owner: owner, Problem: problem})
	}
	have, first := map[string]bool{}, map[string]bool{}
	for _, f := range walkFiles(dir, depth) {
		have[f.name] = true
	}
	for name := range have {
		if all, err := shardsOf(name); err == nil && len(all) > 1 && !first[all[0]] {
			first[all[0]] = true
			if i := slices.IndexFunc(all, func(n string) bool { return !have[n] }); i >= 0 {
				add(all[0], path.Base(all[i])+" is missing")
			}
		}
	}
	for _, name := range danglingLinks(dir, depth) {
		if all, err := shardsOf(name); err == nil && isModelGGUF(name) && !first[all[0]] {
			first[all[0]] = true
			add(all[0], path.Base(name)+" is a link to a file that is missing")
		}
	}
	if have["config.json"] && !weightsComplete(dir) {
		add("", "a file that model.safetensors.index.json names is missing")
	}
	return out
}

// danglingLinks lists the links below dir whose target is gone, by name relative
// to dir.
func danglingLinks(dir string, depth int) (out []string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		p := filepath.Join(dir, e.Name())
		switch {
		case e.IsDir() && depth > 0:
			for _, n := range danglingLinks(p, depth-1) {
				out = append(out, path.Join(e.Name(), n))
			}
		case e.Type()&os.ModeSymlink != 0:
			if _, err := os.Stat(p); os.IsNotExist(err) {
				out = append(out, e.Name())
			}
		}
	}
	return out
}

// brokenOllama lists Ollama's manifests whose model cannot be opened.
func brokenOllama() (out []Model) {
	for f := range ollamaManifests {
		if openOllama(f.dir, f.path, f.ref) == nil {
			out = append(out, Model{Name: f.ref, Ref: f.ref, Owner: OwnerOllama, Problem: ollamaProblem(f.dir, f.path)})
		}
	}
	return out
}

// ollamaProblem says why openOllama opens no model.
func ollamaProblem(dir, manifestPath string) string {
	b, err := readSmall(manifestPath, 4<<20)
	if err != nil {
		return err.Error()
	}
	mf, err := parseOllamaManifest(b)
	if err != nil {
		return err.Error()
	}
	layer, err := mf.model()
	if err != nil {
		return strings.TrimPrefix(err.Error(), "manifest: ")
	}
	sum, _ := layer.sum()
	fi, err := os.Stat(filepath.Join(dir, "blobs", "sha256-"+sum))
	if err != nil {
		return "blobs/sha256-" + sum[:12] + "… is missing"
	}
	return fmt.Sprintf("blobs/sha256-%s…: expected %d bytes, found %d", sum[:12], layer.Size, fi.Size())
}
