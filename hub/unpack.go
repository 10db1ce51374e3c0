package hub

import (
	"archive/zip"
	"bufio"
	"compress/flate"
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
)

// barSize is from where on checking a file takes long enough to show.
const barSize = 256 << 20

// file fetches one file of a model into name+".incomplete", checked and ready
// to be published.
func (c *client) file(ctx context.Context, f *planFile, dir, label string) (manifestFile, error) {
	path := filepath.Join(dir, filepath.FromSlash(f.name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return manifestFile{}, err
	}
	if err := c.fetchPieces(ctx, f, dir, label); err != nil {
		return manifestFile{}, err
	}
	var sum string
	var err error
	if len(f.pieces) == 1 && f.pieces[0].form == formPlain {
		st := loadState(path, f.pieces[0].obj)
		if st == nil || st.Sum == "" {
			return manifestFile{}, fmt.Errorf("%s: the download's record is gone", f.name)
		}
		sum = st.Sum
	} else if sum, err = c.assemble(ctx, f, dir, label); err != nil {
		return manifestFile{}, err
	}
	if isModelGGUF(f.name) {
		if err := checkMagic(path + incompleteSuffix); err != nil {
			removePartial(path)
			return manifestFile{}, fmt.Errorf("%s: %w", f.name, err)
		}
	}
	fi, err := os.Stat(path + incompleteSuffix)
	if err != nil {
		return manifestFile{}, err
	}
	return manifestFile{Path: f.name, Size: fi.Size(), SHA256: sum}, nil
}

// fetchPieces downloads the pieces of a file under one progress bar.
func (c *client) fetchPieces(ctx context.Context, f *planFile, dir, label string) (err error) {
	var total int64
	for _, p := range f.pieces {
		switch {
		case p.local != "":
		case p.obj.size < 0:
			total = -1
		case total >= 0:
			total += p.obj.size
		}
	}
	if total == 0 && f.size != 0 { // all local
		return nil
	}
	bar := c.o.start(label, total)
	defer func() { bar.Done(err) }()
	m := meter{bar: bar}
	for _, p := range f.pieces {
		if p.local != "" {
			continue
		}
		if _, err := c.fetch(ctx, p.obj, filepath.Join(dir, filepath.FromSlash(p.raw)), m); err != nil {
			return err
		}
		m.base += max(p.obj.size, 0)
	}
	return nil
}

// assemble unpacks and concatenates the fetched pieces into the file, checks
// it, and deletes the pieces.
func (c *client) assemble(ctx context.Context, f *planFile, dir, label string) (sum string, err error) {
	path := filepath.Join(dir, filepath.FromSlash(f.name))
	removePartial(path)
	out, err := os.OpenFile(path+incompleteSuffix, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return "", err
	}
	defer func() {
		if cerr := out.Close(); err == nil && cerr != nil {
			err = cerr
		}
		if err != nil {
			removePartial(path)
		}
	}()
	bar := c.o.start("unpacking "+label, f.size)
	defer func() { bar.Done(err) }()
	whole := sha256.New()
	for i := range f.pieces {
		p := &f.pieces[i]
		raw := p.local
		if raw == "" {
			raw = filepath.Join(dir, filepath.FromSlash(p.raw)) + incompleteSuffix
		}
		if err := p.unpack(ctx, raw, io.MultiWriter(out, whole), bar); err != nil {
			if isContentError(err) && p.local == "" {
				removePartial(filepath.Join(dir, filepath.FromSlash(p.raw)))
			}
			return "", fmt.Errorf("%s: %w", f.name, err)
		}
	}
	sum = hex.EncodeToString(whole.Sum(nil))
	fi, err := out.Stat()
	if err == nil && f.size >= 0 && fi.Size() != f.size {
		err = fmt.Errorf("%s: size: expected %d, found %d", f.name, f.size, fi.Size())
	}
	if err == nil && f.sha256 != "" && sum != f.sha256 {
		err = &checksumError{f.name, f.sha256, sum}
	}
	if err == nil {
		err = out.Sync()
	}
	for _, p := range f.pieces { // good or bad, they are of no more use
		if p.local == "" {
			removePartial(filepath.Join(dir, filepath.FromSlash(p.raw)))
		}
	}
	return sum, err
}

func isContentError(err error) bool {
	var ce *checksumError
	var corrupt flate.CorruptInputError
	return errors.As(err, &ce) || errors.As(err, &corrupt) || errors.Is(err, zip.ErrChecksum) ||
		errors.Is(err, zip.ErrFormat) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, errWrongLength)
}

var errWrongLength = errors.New("length differs from the archive's directory")

// unpack writes the finished bytes of a piece to w and checks them.
func (p *piece) unpack(ctx context.Context, raw string, w io.Writer, bar Bar) error {
	in, err := os.Open(raw)
	if err != nil {
		return err
	}
	defer in.Close()
	var r io.Reader = bufio.NewReaderSize(in, 1<<20)
	var crc hash.Hash32
	switch p.form {
	case formZip:
		m, err := openMember(in, p.member)
		if err != nil {
			return err
		}
		rc, err := m.Open()
		if err != nil {
			return err
		}
		defer rc.Close()
		r = rc
	case formDeflate:
		z := flate.NewReader(r)
		defer z.Close()
		r, crc = z, crc32.NewIEEE()
	case formStored:
		crc = crc32.NewIEEE()
	}
	sum := sha256.New()
	writers := []io.Writer{w, sum, countBar{ctx, bar}}
	if crc != nil {
		writers = append(writers, crc)
	}
	most := p.size
	if most < 0 {
		most = 1 << 62
	}
	n, err := io.CopyBuffer(io.MultiWriter(writers...), io.LimitReader(r, most+1), make([]byte, readBuffer))
	switch {
	case err != nil:
		return err
	case p.size >= 0 && n != p.size:
		return fmt.Errorf("%w: expected %d bytes, found %d", errWrongLength, p.size, n)
	case crc != nil && crc.Sum32() != p.crc:
		return &checksumError{"zip member", fmt.Sprintf("crc32 %08x", p.crc), fmt.Sprintf("%08x", crc.Sum32())}
	}
	if got := hex.EncodeToString(sum.Sum(nil)); p.sha256 != "" && got != p.sha256 {
		return &checksumError{"piece " + p.raw, p.sha256, got}
	}
	return nil
}

// countBar feeds a bar and ends a copy when ctx does.
type countBar struct {
	ctx context.Context
	bar Bar
}

func (c countBar) Write(b []byte) (int, error) {
	c.bar.Add(int64(len(b)))
	return len(b), c.ctx.Err()
}

func openMember(f *os.File, name string) (*zip.File, error) {
	fi, err := f.Stat()
	if err != nil {
		return nil, err
	}
	z, err := zip.NewReader(f, fi.Size())
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) {
		return nil, err
	}
	for _, m := range z.File {
		if m.Name == name {
			return m, nil
		}
	}
	return nil, fmt.Errorf("%s: no member %s", filepath.Base(f.Name()), name)
}

// verify computes the sha256 of a fetched file and compares it with what the
// source or the catalogue says.
func (c *client) verify(f *os.File, size int64, obj object, name string) (sum string, err error) {
	var bar Bar = nopBar{}
	if size >= barSize {
		bar = c.o.start("checking "+name, size)
		defer func() { bar.Done(err) }()
	}
	h := sha256.New()
	git := sha1.New()
	w := []io.Writer{h, countBar{context.Background(), bar}}
	if obj.git != "" {
		fmt.Fprintf(git, "blob %d\x00", size)
		w = append(w, git)
	}
	n, err := io.CopyBuffer(io.MultiWriter(w...), io.NewSectionReader(f, 0, size), make([]byte, 1<<20))
	if err != nil {
		return "", err
	}
	if n != size {
		return "", fmt.Errorf("%s: size: expected %d, found %d", name, size, n)
	}
	sum = hex.EncodeToString(h.Sum(nil))
	if obj.sha256 != "" && sum != obj.sha256 {
		return "", &checksumError{name, obj.sha256, sum}
	}
	if got := hex.EncodeToString(git.Sum(nil)); obj.git != "" && got != obj.git {
		return "", &checksumError{name, "git blob " + obj.git, got}
	}
	return sum, nil
}

// checkMagic refuses what is no GGUF file, such as a page of HTML with a
// friendly message.
func checkMagic(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	var b [16]byte
	n, _ := io.ReadFull(f, b[:])
	if n >= 4 && string(b[:4]) == "GGUF" {
		return nil
	}
	return fmt.Errorf("not a GGUF file: expected it to start with %q, found %q", "GGUF", b[:n])
}
