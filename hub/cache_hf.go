package hub

import (
	"iter"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// hfRoots lists the folders with the Hugging Face hub's layout: its cache,
// and llama.cpp's if that is set to a folder of its own. Newer versions of
// llama.cpp keep their files in that layout.
//
//	models--org--name/refs/main                    the commit's id
//	models--org--name/snapshots/<commit>/<path>    link to ../../blobs/<etag>, or the file
//	models--org--name/blobs/<etag>                 etag: sha256 of a large file, git id of a small one
func hfRoots() []string {
	root := firstEnv("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE")
	if root == "" {
		root = filepath.Join(hfHome(), "hub")
	}
	roots := []string{root}
	if d := os.Getenv("LLAMA_CACHE"); d != "" && d != root {
		roots = append(roots, d)
	}
	return roots
}

func hfRepoDir(root, repo string) string {
	return filepath.Join(root, "models--"+strings.ReplaceAll(repo, "/", "--"))
}

// hfSnapshot returns the folder of a revision, "" if it is not there.
func hfSnapshot(repoDir, rev string) string {
	if !commit.MatchString(rev) {
		b, err := readSmall(filepath.Join(repoDir, "refs", filepath.FromSlash(rev)), 256)
		if err != nil {
			return hfShortCommit(repoDir, rev)
		}
		if rev = strings.TrimSpace(string(b)); !commit.MatchString(rev) {
			return ""
		}
	}
	dir := filepath.Join(repoDir, "snapshots", rev)
	if fi, err := os.Stat(dir); err != nil || !fi.IsDir() {
		return ""
	}
	return dir
}

// hfShortCommit returns the only snapshot whose commit begins with rev, at least
// the seven digits that the hub shows; "" if there is none or several.
func hfShortCommit(repoDir, rev string) string {
	if !shortCommit.MatchString(rev) {
		return ""
	}
	found := ""
	for _, s := range hfSnapshots(repoDir) {
		if strings.HasPrefix(filepath.Base(s), rev) {
			if found != "" {
				return ""
			}
			found = s
		}
	}
	return found
}

var shortCommit = regexp.MustCompile(`^[0-9a-f]{7,39}$`)

// hfFiles lists a snapshot's files, with the sha256 that the names of large
// blobs are.
func hfFiles(snapshot string) []localFile {
	files := walkFiles(snapshot, 4)
	for i := range files {
		target, err := os.Readlink(files[i].path)
		if err != nil {
			continue
		}
		if base := filepath.Base(target); hexSHA256.MatchString(base) {
			files[i].sum = base
		}
	}
	return files
}

// hfCached finds a reference in one cache. Without a revision in the
// reference, and without the ref that the program writes for "main", the
// newest snapshot counts.
func hfCached(root string, r reference) *Model {
	repoDir := hfRepoDir(root, r.repo)
	var snapshots []string
	if r.rev != "" {
		snapshots = []string{hfSnapshot(repoDir, r.rev)}
	} else {
		snapshots = append([]string{hfSnapshot(repoDir, "main")}, hfSnapshots(repoDir)...)
	}
	for _, s := range snapshots {
		if s == "" {
			continue
		}
		if m := pickLocal(hfFiles(s), r.sel, r.text, OwnerHF); m != nil {
			m.Revision = filepath.Base(s)
			return m
		}
	}
	return nil
}

// hfSnapshots lists a repository's snapshots, the newest first.
func hfSnapshots(repoDir string) []string {
	dir := filepath.Join(repoDir, "snapshots")
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	type snap struct {
		path string
		mod  int64
	}
	var snaps []snap
	for _, e := range entries {
		if fi, err := e.Info(); err == nil && e.IsDir() && commit.MatchString(e.Name()) {
			snaps = append(snaps, snap{filepath.Join(dir, e.Name()), fi.ModTime().UnixNano()})
		}
	}
	slices.SortStableFunc(snaps, func(a, b snap) int {
		switch {
		case a.mod > b.mod:
			return -1
		case a.mod < b.mod:
			return 1
		}
		return 0
	})
	out := make([]string, len(snaps))
	for i, s := range snaps {
		out[i] = s.path
	}
	return out
}

var hfFolder = regexp.MustCompile(`^models--([A-Za-z0-9_][A-Za-z0-9._-]*?)--([A-Za-z0-9_].*)$`)

// hfRepos yields the folders of a cache that are of repositories, with their names.
func hfRepos(root string) iter.Seq2[string, string] {
	return func(yield func(dir, repo string) bool) {
		entries, _ := os.ReadDir(root)
		for _, e := range entries {
			m := hfFolder.FindStringSubmatch(e.Name())
			if m != nil && !yield(filepath.Join(root, e.Name()), m[1]+"/"+m[2]) {
				return
			}
		}
	}
}

// listHF lists the models of a cache: for each repository those of "main", or
// of the newest snapshot.
func listHF(root string) []Model {
	var out []Model
	for repoDir, repo := range hfRepos(root) {
		snapshot := hfSnapshot(repoDir, "main")
		if snapshot == "" {
			if all := hfSnapshots(repoDir); len(all) > 0 {
				snapshot = all[0]
			}
		}
		if snapshot == "" {
			continue
		}
		for _, model := range groupLocal(hfFiles(snapshot), OwnerHF, hfRefOf(repo)) {
			model.Revision = filepath.Base(snapshot)
			out = append(out, model)
		}
	}
	return out
}

// hfRefOf names a repository's models as references.
func hfRefOf(repo string) func(string) string {
	return func(name string) string {
		if name == "" {
			return "hf:" + repo
		}
		return "hf:" + repo + ":" + name
	}
}
