// Package page is the page that people see who open the server's address in a
// browser: chat, and a look inside the engine. It uses the routes that any other
// client uses, and nothing from another host. Its sources are in web; go generate
// bundles them into dist.
package page

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"sync"
)

//go:generate go run -C _bundle .

//go:embed dist web/index.html web/icon.svg
var files embed.FS

// Prefix is where the files lie that the page consists of.
const Prefix = "/ui/"

// policy lets the page run its own script and style sheet, talk to this server
// and do nothing else.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types dompurify"

// file is a file as it is sent.
type file struct {
	kind    string // content type
	plain   []byte
	packed  []byte // by gzip
	tag     string // of the contents
	forever bool   // its name changes with its contents
}

// load reads the embedded files once. The names of script and style sheet get
// their contents' tags, so that browsers keep them and still see new ones.
var load = sync.OnceValue(func() map[string]*file {
	out := map[string]*file{}
	index := read("web/index.html", "text/html; charset=utf-8")
	for _, f := range []struct{ path, kind string }{
		{"dist/app.js", "text/javascript; charset=utf-8"}, {"dist/app.css", "text/css; charset=utf-8"}, {"web/icon.svg", "image/svg+xml"},
	} {
		x := read(f.path, f.kind)
		ext := path.Ext(f.path)
		name := strings.TrimSuffix(path.Base(f.path), ext) + "-" + x.tag + ext
		x.forever = true
		out[name] = x
		index.plain = bytes.ReplaceAll(index.plain, []byte(Prefix+path.Base(f.path)), []byte(Prefix+name))
	}
	index.seal()
	out[""] = index
	return out
})

// read returns an embedded file.
func read(name, kind string) *file {
	b, err := fs.ReadFile(files, name)
	if err != nil {
		panic(err) // embedded: the build has it
	}
	f := &file{kind: kind, plain: b}
	f.seal()
	return f
}

// seal makes what is derived from the contents.
func (f *file) seal() {
	sum := sha256.Sum256(f.plain)
	f.tag = hex.EncodeToString(sum[:6])
	var b bytes.Buffer
	z, _ := gzip.NewWriterLevel(&b, gzip.BestCompression)
	_, _ = z.Write(f.plain) // to memory: cannot fail
	_ = z.Close()
	f.packed = b.Bytes()
}

// Wanted reports whether a request for / comes from somebody who wants to see a
// page: clients that probe for a server do not ask for HTML.
func Wanted(r *http.Request) bool {
	for _, accept := range r.Header.Values("Accept") {
		for kind := range strings.SplitSeq(accept, ",") {
			kind, _, _ = strings.Cut(kind, ";")
			if strings.EqualFold(strings.TrimSpace(kind), "text/html") {
				return true
			}
		}
	}
	return false
}

// Serve answers with the page, or with one of its files under Prefix. It returns
// false, and has answered nothing, if there is no such file.
func Serve(w http.ResponseWriter, r *http.Request) bool {
	f := load()[strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, Prefix), "/")]
	if f == nil {
		return false
	}
	h := w.Header()
	h.Set("Content-Type", f.kind)
	h.Set("Content-Security-Policy", policy)
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("ETag", `"`+f.tag+`"`)
	h.Add("Vary", "Accept-Encoding")
	if f.forever {
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
	} else {
		h.Set("Cache-Control", "no-cache")
	}
	if r.Header.Get("If-None-Match") == `"`+f.tag+`"` {
		w.WriteHeader(http.StatusNotModified)
		return true
	}
	body := f.plain
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		h.Set("Content-Encoding", "gzip")
		body = f.packed
	}
	if r.Method != http.MethodHead {
		_, _ = w.Write(body) // the client is gone otherwise
	}
	return true
}
