package hub

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// plan is what one source would deliver for a model.
type plan struct {
	source   string // canonical reference with the version found
	revision string
	license  string
	quant    string
	open     string // name of the file to open, or "."
	files    []planFile
}

// planFile is one file of the model.
type planFile struct {
	name   string // slash-separated, checked by safeName
	size   int64  // -1: not known
	sha256 string // "" if not known
	pieces []piece
}

// piece is a part of a file, in order.
type piece struct {
	obj    object // what to fetch
	raw    string // name of the file to fetch it into
	local  string // a file on this machine that is used instead of fetching
	form   pieceForm
	member string // formZip: the name in the archive
	size   int64  // bytes of the finished piece; -1: not known
	sha256 string // of the finished piece; "" if not known
	crc    uint32 // formDeflate, formStored: of the finished piece
}

// pieceForm says how the fetched bytes become the piece.
type pieceForm int

const (
	formPlain   pieceForm = iota // they are the file itself: no copy is made
	formZip                      // they are a whole zip archive that has the piece as a member
	formDeflate                  // they are the compressed data of a zip member
	formStored                   // they are the uncompressed data of a zip member
)

// key identifies the content that a plan asks for, for going on with a folder
// of which some files are done.
func (f *planFile) key(p *plan) string {
	if f.sha256 != "" {
		return "sha256:" + f.sha256
	}
	return fmt.Sprintf("%s@%s#%s:%d", p.source, p.revision, f.name, f.size)
}

// candidate is a source to try.
type candidate struct {
	ref reference
	cat *CatalogSource // nil for an explicit reference
}

func (r reference) candidates() ([]candidate, error) {
	if r.kind != kindCatalog {
		return []candidate{{ref: r}}, nil
	}
	var out []candidate
	for i := range r.entry.Sources {
		s := &r.entry.Sources[i]
		sr, err := parseRef(s.Ref)
		if err != nil {
			return nil, err
		}
		out = append(out, candidate{sr, s})
	}
	return out, nil
}

// pull downloads the model under its lock.
func (c *client) pull(ctx context.Context, r reference) (*Model, error) {
	st := store{c.o.dir()}
	dir := st.modelDir(r.text)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("hub: %s: %w", r.text, err)
	}
	unlock, err := c.lock(ctx, st, r.text)
	if err != nil {
		return nil, fmt.Errorf("hub: %s: lock: %w", r.text, err)
	}
	defer unlock()
	if m := st.find(r.text); m != nil { // another process was first
		return m, nil
	}
	cands, err := r.candidates()
	if err != nil {
		return nil, err
	}
	failed := &sourceErrors{name: r.text}
	for i, cand := range cands {
		m, err := c.pullFrom(ctx, r, cand, dir)
		if err == nil {
			return m, nil
		}
		if ctx.Err() != nil {
			return nil, fmt.Errorf("hub: %s: stopped (what has arrived is kept): %w", r.text, context.Cause(ctx))
		}
		if errors.As(err, new(*spaceError)) || errors.As(err, new(*os.PathError)) {
			return nil, fmt.Errorf("hub: %s: %w", r.text, err) // ours, not the source's fault
		}
		failed.at = append(failed.at, cand.ref.text)
		failed.errs = append(failed.errs, err)
		if i+1 < len(cands) {
			c.o.notify("%s: %s: %v; trying %s", r.text, cand.ref.text, err, cands[i+1].ref.text)
		}
	}
	os.Remove(dir) // if nothing has arrived
	if r.kind != kindCatalog {
		return nil, fmt.Errorf("hub: %s: %w", r.text, failed.errs[0])
	}
	return nil, failed
}

// lock takes the model's lock, waiting for a process that has it.
func (c *client) lock(ctx context.Context, st store, ref string) (func(), error) {
	l, err := st.lockFile(ref)
	if err != nil {
		return nil, err
	}
	got, err := l.TryLock()
	if err != nil {
		return nil, err
	}
	if !got {
		c.o.notify("%s: another process is downloading it; waiting", ref)
		if _, err := l.TryLockContext(ctx, 100*time.Millisecond); err != nil {
			return nil, err
		}
		// It may have been removed meanwhile, folder and all.
		if err := os.MkdirAll(st.modelDir(ref), 0o755); err != nil {
			return nil, err
		}
	}
	return func() { l.Unlock() }, nil
}

// pullFrom gets the model from one source.
func (c *client) pullFrom(ctx context.Context, r reference, cand candidate, dir string) (_ *Model, err error) {
	p, err := c.plan(ctx, cand, dir)
	if err != nil {
		return nil, err
	}
	if err := p.check(); err != nil {
		return nil, err
	}
	if m := p.here(store{c.o.dir()}); m != nil {
		c.o.notify("%s: the same file is here already (%s): %s", r.text, m.Owner, m.Path())
		m.Name = r.text
		return m, nil
	}
	need, err := p.need(dir)
	if err == nil {
		err = needSpace(dir, need)
	}
	if err != nil {
		return nil, err
	}
	defer func() { // others may have filled the disk since
		if err != nil {
			left, _ := p.need(dir) // as above
			err = noSpace(dir, left, err)
		}
	}()
	mf := &manifest{Version: 1, Ref: r.text, Source: p.source, Revision: p.revision, License: p.license, Quant: p.quant, Open: p.open, Created: time.Now().UTC().Truncate(time.Second)}
	if r.entry != nil {
		mf.License = r.entry.License
	}
	old, _ := readManifest(filepath.Join(dir, journalName))
	for i := range p.files {
		f := &p.files[i]
		if done, ok := old.has(f.name, f.key(p), dir); ok {
			mf.Files = append(mf.Files, done)
			continue
		}
		label := r.text
		if len(p.files) > 1 {
			label = f.name
		}
		done, err := c.file(ctx, f, dir, label)
		if err != nil {
			return nil, err
		}
		done.Key = f.key(p)
		mf.Files = append(mf.Files, done)
		if err := mf.write(filepath.Join(dir, journalName)); err != nil {
			return nil, err
		}
		if err := publish(dir, f.name); err != nil {
			return nil, err
		}
	}
	for i := range mf.Files {
		mf.Files[i].Key = ""
	}
	m, err := mf.model(dir)
	if err != nil {
		return nil, err
	}
	if err := mf.write(filepath.Join(dir, manifestName)); err != nil {
		return nil, err
	}
	mf.tidy(dir)
	return m, nil
}

// here finds a model on this machine that is the very file that the plan would
// download, whatever its name is there; nil if there is none or the source tells
// no sum.
func (p *plan) here(st store) *Model {
	if len(p.files) != 1 || p.files[0].sha256 == "" || p.open == "." {
		return nil
	}
	own, _ := st.list()
	for _, m := range append(own, listCached()...) {
		if m.SHA256 == p.files[0].sha256 && (p.files[0].size < 0 || m.Size == p.files[0].size) {
			return &m
		}
	}
	return nil
}

// has finds a file that an earlier run finished. It is either at its place or
// one rename away from it.
func (m *manifest) has(name, key, dir string) (manifestFile, bool) {
	if m == nil {
		return manifestFile{}, false
	}
	for _, f := range m.Files {
		if f.Path != name || f.Key != key {
			continue
		}
		fi, err := os.Stat(filepath.Join(dir, filepath.FromSlash(name)))
		if err != nil && publish(dir, name) == nil {
			fi, err = os.Stat(filepath.Join(dir, filepath.FromSlash(name)))
		}
		return f, err == nil && fi.Size() == f.Size
	}
	return manifestFile{}, false
}

// publish gives a finished file its name.
func publish(dir, name string) error {
	p := filepath.Join(dir, filepath.FromSlash(name))
	if err := os.Rename(p+incompleteSuffix, p); err != nil {
		return err
	}
	os.Remove(p + stateSuffix)
	return nil
}

// check refuses a plan with file names or sizes that no honest source gives.
func (p *plan) check() error {
	if len(p.files) == 0 {
		return errors.New("no files")
	}
	seen := map[string]bool{}
	for _, f := range p.files {
		if err := safeName(f.name); err != nil {
			return err
		}
		folded := strings.ToLower(f.name)
		if seen[folded] || strings.HasPrefix(folded, manifestName) || strings.HasSuffix(folded, incompleteSuffix) || strings.HasSuffix(folded, stateSuffix) {
			return fmt.Errorf("file name %q: reserved or given twice", f.name)
		}
		seen[folded] = true
		if f.size < -1 || (f.sha256 != "" && !hexSHA256.MatchString(f.sha256)) {
			return fmt.Errorf("%s: bad size %d or checksum %q", f.name, f.size, f.sha256)
		}
	}
	return nil
}

// need returns the bytes that are still to come, as far as the source says how
// many: the fetched ones and, where they are packed, the unpacked ones beside
// them.
func (p *plan) need(dir string) (need int64, err error) {
	for _, f := range p.files {
		for _, pc := range f.pieces {
			if pc.obj.size > 0 {
				need += pc.obj.size
				if st := loadState(filepath.Join(dir, filepath.FromSlash(pc.raw)), pc.obj); st != nil {
					need -= st.present()
				}
			}
			if pc.form != formPlain && pc.size > 0 {
				need += pc.size
			}
			if need < 0 {
				return 0, fmt.Errorf("%s: size is beyond any disk", f.name)
			}
		}
	}
	return need, nil
}

// plan asks a source what it has for the reference.
func (c *client) plan(ctx context.Context, cand candidate, dir string) (*plan, error) {
	var p *plan
	var err error
	switch cand.ref.kind {
	case kindHF:
		p, err = c.planHF(ctx, cand.ref)
	case kindOllama:
		p, err = c.planOllama(ctx, cand.ref)
	case kindPyPI:
		p, err = c.planPyPI(ctx, cand, dir)
	case kindURL:
		p, err = c.planURL(ctx, cand.ref)
	default:
		err = fmt.Errorf("%s: not something to download", cand.ref.text)
	}
	if err != nil {
		return nil, err
	}
	if p.quant == "" {
		p.quant = quantOf(p.files[0].name)
	}
	if s := cand.cat; s != nil {
		p.quant = s.Quant
		if len(p.files) == 1 {
			if err := p.files[0].expect(s.Size, s.SHA256); err != nil {
				return nil, err
			}
		}
	}
	return p, nil
}

// expect adds what the catalogue knows about the file. A source that says
// something else is not asked for its bytes.
func (f *planFile) expect(size int64, sum string) error {
	if size > 0 {
		if f.size >= 0 && f.size != size {
			return fmt.Errorf("%s: size: expected %d, found %d at the source", f.name, size, f.size)
		}
		f.size = size
	}
	if sum != "" {
		if f.sha256 != "" && f.sha256 != sum {
			return &checksumError{f.name + " (as the source announces it)", sum, f.sha256}
		}
		f.sha256 = sum
		if len(f.pieces) == 1 && f.pieces[0].form == formPlain {
			f.pieces[0].obj.sha256 = sum
		}
	}
	return nil
}
