package hub

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"net/url"
	"strings"
	"testing"
)

func FuzzParseRef(f *testing.F) {
	for _, s := range []string{"smollm2", "hf:a/b@v:Q4_0", "hf:a/b/../c.gguf", "ollama:h:5/n/m:t", "pypi:a==1/b/c.gguf", "https://h/x.gguf#sha256=00", "file:///x", "a/b:c", "./x", `C:\x`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		r, err := parseRef(s)
		if err != nil {
			return
		}
		if safeName(slug(r.text)) != nil {
			t.Fatalf("slug(%q) = %q is no safe name", r.text, slug(r.text))
		}
		for _, part := range []string{r.repo, r.rev, r.sel, r.model, r.tag, r.member} {
			if part != "" && (strings.HasPrefix(part, "/") || strings.Contains("/"+part+"/", "/../") || strings.Contains(part, `\`)) {
				t.Fatalf("parseRef(%q) let %q pass", s, part)
			}
		}
		if r.kind == kindFile {
			return
		}
		again, err := parseRef(r.text)
		if err != nil || again.text != r.text {
			t.Fatalf("parseRef(%q) = %q, parsed again: %q, %v", s, r.text, again.text, err)
		}
	})
}

func FuzzSimplePage(f *testing.F) {
	f.Add([]byte(`{"meta":{"api-version":"1.1"},"files":[{"filename":"x-1-py3-none-any.whl","url":"../x","hashes":{"sha256":"00"},"size":-1,"yanked":"why"}]}`), "application/vnd.pypi.simple.v1+json")
	f.Add([]byte(`<base href="//h/"><a href="x-1-py3-none-any.whl#sha256=00" data-yanked>x</a><a href='x-2.0a1-py3-none-any.whl'>`), "text/html")
	f.Fuzz(func(t *testing.T, body []byte, contentType string) {
		base := &url.URL{Scheme: "https", Host: "index.example", Path: "/simple/x/"}
		ws, err := parseSimple(body, contentType, base, "x")
		if err != nil {
			return
		}
		for _, w := range ws {
			if safeName(w.filename) != nil || w.size < -1 || (w.sha256 != "" && !hexSHA256.MatchString(w.sha256)) {
				t.Fatalf("wheel %+v", w)
			}
			if w.url != "" && !strings.HasPrefix(w.url, "https://") {
				t.Fatalf("url %q", w.url)
			}
		}
		bestWheel(ws, "")
	})
}

func FuzzOllamaManifest(f *testing.F) {
	f.Add([]byte(`{"schemaVersion":2,"config":{"digest":"sha256:00"},"layers":[{"mediaType":"application/vnd.ollama.image.model","digest":"sha256:` + sumOf(nil) + `","size":5}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := parseOllamaManifest(b)
		if err != nil {
			return
		}
		l, err := m.model()
		if err != nil {
			return
		}
		sum, err := l.sum()
		if err != nil || !hexSHA256.MatchString(sum) || l.Size < 0 {
			t.Fatalf("layer %+v, sum %q, %v", l, sum, err)
		}
	})
}

func FuzzHFInfo(f *testing.F) {
	f.Add([]byte(`{"sha":"`+testCommit+`","cardData":{"license":["a"]},"tags":["license:mit"],"siblings":[{"rfilename":"../a.gguf","size":1},{"rfilename":"b-Q4_0.gguf"}]}`), "")
	f.Add([]byte(`{"siblings":[{"rfilename":"m-00001-of-99999.gguf"}]}`), "Q4_0")
	f.Fuzz(func(t *testing.T, b []byte, sel string) {
		info := &hfInfo{}
		if json.Unmarshal(b, info) != nil {
			return
		}
		info.license()
		var names []string
		for _, s := range info.Siblings {
			names = append(names, s.Name)
		}
		chosen, open, err := hfPick(names, sel)
		if err == nil && (len(chosen) == 0 || len(chosen) > len(names) || open == "") {
			t.Fatalf("hfPick(%q, %q) = %v, %q", names, sel, chosen, open)
		}
	})
}

// FuzzWheel reads archives as wheels: whatever they say, member names are safe
// and no piece is larger than what fits a disk.
func FuzzWheel(f *testing.F) {
	f.Add(wheelFile(f, "x", "1", "License: MIT\nRequires-Dist: x-part1==1", "x/m.gguf", "GGUF1234"), "")
	f.Add(zipFile(f, zip.Store, "x/part1", "a", "x/part2", "b", "SHA256SUMS", "00  x"), "")
	f.Add(zipFile(f, zip.Deflate, "../m.gguf", "GGUF"), "m.gguf")
	f.Fuzz(checkArchive)
}

func checkArchive(t *testing.T, b []byte, want string) {
	z, err := zip.NewReader(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		return
	}
	v := &wheelView{c: &client{}, zip: z, size: int64(len(b)), w: wheel{filename: "x-1-py3-none-any.whl", url: "https://h/x", size: -1}}
	v.license()
	v.partPackages("x")
	members, name, err := v.choose(want)
	if err != nil {
		return
	}
	v.listedSum(name)
	pf := planFile{name: name, size: -1}
	for _, m := range members {
		if v.addPiece(&pf, m, "", "") != nil {
			return
		}
	}
	for _, p := range pf.pieces {
		if safeName(p.member) != nil || safeName(p.raw) != nil || p.size < 0 || p.obj.size < 0 || p.obj.off < 0 {
			t.Fatalf("piece %+v", p)
		}
	}
}

// FuzzWheelMembers makes valid archives of odd names and records.
func FuzzWheelMembers(f *testing.F) {
	f.Add("x/m.gguf", "x/n.gguf", "x/m.gguf,sha256=AA==,3\n", "License: MIT\n\nbody", "")
	f.Add("x/m.gguf.part00", "x/m.gguf.part01", "\"", "Requires-Dist: x-part1 (==1)\nLicense-Expression: a", "m.gguf")
	f.Add("../part1.bin", "/part02.bin", "", ":", `..\m.gguf`)
	f.Fuzz(func(t *testing.T, a, b, record, metadata, want string) {
		if strings.HasSuffix(a, "/") || strings.HasSuffix(b, "/") || len(a)+len(b) > 10_000 {
			return // a folder has no content
		}
		checkArchive(t, zipFile(t, zip.Store, a, "GGUF", b, "GGUF", "i.dist-info/RECORD", record, "i.dist-info/METADATA", metadata, "SHA256SUMS", record), want)
	})
}

// FuzzState reads state files: whatever they say, a state that is used has
// segments that lie in the file.
func FuzzState(f *testing.F) {
	f.Add([]byte(`{"version":1,"url":"u","size":100,"etag":"e","segment":64,"have":[64,3]}`), int64(100))
	f.Add([]byte(`{"version":1,"url":"u","size":9223372036854775807,"etag":"e","segment":1,"have":[]}`), int64(-1))
	f.Fuzz(func(t *testing.T, b []byte, size int64) {
		st := &fetchState{}
		if size < -1 || json.Unmarshal(b, st) != nil || !st.usable(object{url: "u", size: size}, 80) {
			return
		}
		for i, h := range st.Have {
			if n := st.segmentLen(i); n < 1 || h < 0 || h > n {
				t.Fatalf("segment %d of %+v", i, st)
			}
		}
		if p := st.present(); p < 0 || p > st.Size || p > 80 {
			t.Fatalf("state %+v has %d bytes present", st, p)
		}
	})
}

func FuzzPipFile(f *testing.F) {
	f.Add([]byte("[global]\nindex-url = https://a/simple\n  more\ntimeout: 5\n# c\n[install]\nproxy=x:1\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		conf := map[string]string{}
		parsePipFile(b, conf)
		_, _ = newPipConfig(conf)
	})
}
