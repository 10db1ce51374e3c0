package hub

import (
	"encoding/json"
	"net/url"
	"os"
	"path/filepath"
	"strings"
)

// llama.cpp's older layout is a flat folder: <user>_<repo>_<file>.gguf, with
// <same>.json that holds the address it came from, or <same>.etag.

func llamaFlatFiles() []localFile { return walkFiles(llamaCacheDir(), 0) }

// llamaFlatRepo lists the files of one repository. The flat names do not tell
// where the user's name ends, but the reference does.
func llamaFlatRepo(repo string) []localFile {
	prefix := strings.ReplaceAll(repo, "/", "_") + "_"
	var out []localFile
	for _, f := range llamaFlatFiles() {
		if rest, ok := strings.CutPrefix(f.name, prefix); ok && strings.HasSuffix(rest, ".gguf") {
			f.name = rest
			out = append(out, f)
		}
	}
	return out
}

// listLlamaFlat lists all models of the folder. One whose origin is not
// recorded is named by its path.
func listLlamaFlat() []Model {
	files := llamaFlatFiles()
	return groupLocal(files, OwnerLlamaCpp, func(name string) string {
		p := filepath.Join(llamaCacheDir(), name)
		b, err := readSmall(p+".json", 1<<16)
		if err != nil {
			return p
		}
		var origin struct {
			URL string `json:"url"`
		}
		if json.Unmarshal(b, &origin) != nil {
			return p
		}
		u, err := url.Parse(origin.URL)
		if err != nil {
			return p
		}
		// Whatever mirror it came from, the path is that of the hub.
		r, err := parseHFPage(origin.URL, u)
		if err != nil || r.sel == "" || strings.ReplaceAll(r.repo, "/", "_")+"_"+filepath.Base(r.sel) != name {
			return p
		}
		return r.text
	})
}

// LM Studio keeps <folder>/<publisher>/<repo>/<file>.gguf.

func lmStudioDirs() []string {
	home := homeDir()
	dirs := []string{filepath.Join(home, ".lmstudio", "models"), filepath.Join(home, ".cache", "lm-studio", "models")}
	// A person may have moved the folder; the program notes where to.
	if b, err := readSmall(filepath.Join(home, ".lmstudio", "settings.json"), 4<<20); err == nil {
		var s struct {
			Downloads string `json:"downloadsFolder"`
		}
		if json.Unmarshal(b, &s) == nil && filepath.IsAbs(s.Downloads) && s.Downloads != dirs[0] {
			dirs = append([]string{s.Downloads}, dirs...)
		}
	}
	return dirs
}

func lmStudioRepo(repo string) []localFile {
	for _, d := range lmStudioDirs() {
		if files := walkFiles(filepath.Join(d, filepath.FromSlash(repo)), 1); len(files) > 0 {
			return files
		}
	}
	return nil
}

// lmStudioRepos yields the folders of repositories, with their names.
func lmStudioRepos(yield func(dir, repo string) bool) {
	for _, d := range lmStudioDirs() {
		publishers, _ := os.ReadDir(d)
		for _, p := range publishers {
			repos, _ := os.ReadDir(filepath.Join(d, p.Name()))
			for _, r := range repos {
				if !yield(filepath.Join(d, p.Name(), r.Name()), p.Name()+"/"+r.Name()) {
					return
				}
			}
		}
	}
}

func listLMStudio() (out []Model) {
	for dir, repo := range lmStudioRepos {
		out = append(out, groupLocal(walkFiles(dir, 1), OwnerLMStudio, hfRefOf(repo))...)
	}
	return out
}
