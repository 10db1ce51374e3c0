package packfile

import (
	"context"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/gofrs/flock"

	"ridge/internal/atomicfile"
	"ridge/internal/disk"
)

// chunk is how much is written at a time, at multiples of it: the system then
// keeps what was written in huge pages, if it has such for files.
const chunk = 2 << 20

// reserve is what is left free on a disk.
const reserve = 64 << 20

// freeSpace is replaced by tests.
var freeSpace = disk.Free

// Writing is what Write needs besides the directory.
type Writing struct {
	// Bytes returns matrix i, which must stay what it is until the next call, one
	// after the other in their order once all sizes are known: of matrices whose
	// entries have none it is called for that first.
	Bytes func(i int) []byte
	// Pause, when not nil, is called after each so many bytes.
	Pause func(n int)
	// Written, when not nil, is called when Bytes is used no more: what is left
	// is to bring the file to the disk.
	Written func()
	// Last, when not nil, is called at the very end; its error keeps the file
	// from appearing.
	Last func() error
}

// Write puts a file of the matrices of d in dir, which it makes, at the place
// that Path gives for d.Model. The file appears whole or not at all. One process writes in a folder at a time;
// others wait until ctx is done, and leave a file alone that has d's key when
// their turn comes. Files whose model is gone are removed on this occasion, and
// what killed processes have left.
func Write(ctx context.Context, dir string, d *Directory, w Writing) error {
	d.Model = whole(d.Model)
	path := Path(dir, d.Model)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	l := flock.New(filepath.Join(dir, lockName))
	if ok, err := l.TryLockContext(ctx, 50*time.Millisecond); !ok {
		return err
	}
	defer l.Unlock()
	atomicfile.Sweep(dir)
	sweep(dir)
	if old, err := Open(path); err == nil {
		same := old.Key == d.Key
		old.Close()
		if same {
			return nil
		}
	}
	os.Remove(path) // of no use any more, and its space may be needed
	for i := range d.Matrix {
		if d.Matrix[i].Size == 0 {
			d.Matrix[i].Size = int64(len(w.Bytes(i)))
		}
	}
	data := d.layOut()
	if free, err := freeSpace(dir); err == nil && free-reserve < data {
		return fmt.Errorf("packfile: %s: %w: needed %d MiB (and 64 in reserve), free %d", dir, syscall.ENOSPC, data>>20, free>>20)
	}
	return atomicfile.Write(path, func(out io.Writer) error {
		b := &blocks{ctx: ctx, w: out, pause: w.Pause, buf: make([]byte, 0, chunk)}
		if err := d.write(b, data, w.Bytes); err != nil {
			return err
		}
		if w.Written != nil {
			w.Written()
		}
		rest, err := d.encode(data)
		if err != nil {
			return err
		}
		if _, err = b.Write(rest); err == nil {
			err = b.flush()
		}
		if err == nil && w.Last != nil {
			err = w.Last()
		}
		return err
	})
}

// write writes the matrices, each at its place, and takes their sums.
func (d *Directory) write(b *blocks, data int64, bytes func(int) []byte) error {
	var zero [align]byte
	at := int64(0)
	for i := range d.Matrix {
		e, m := &d.Matrix[i], bytes(i)
		e.CRC, e.Samples = 0, sum(m)
		if _, err := b.Write(zero[:e.Offset-at]); err != nil {
			return err
		}
		for len(m) > 0 {
			n := min(len(m), chunk)
			if _, err := b.Write(m[:n]); err != nil {
				return err
			}
			e.CRC = crc32.Update(e.CRC, castagnoli, m[:n])
			m = m[n:]
		}
		at = e.Offset + e.Size
	}
	_, err := b.Write(zero[:data-at])
	return err
}

// blocks writes whole chunks.
type blocks struct {
	ctx   context.Context
	w     io.Writer
	pause func(n int)
	buf   []byte
}

func (b *blocks) Write(p []byte) (int, error) {
	all := len(p)
	for len(p) > 0 {
		n := min(len(p), chunk-len(b.buf))
		b.buf, p = append(b.buf, p[:n]...), p[n:]
		if len(b.buf) < chunk {
			break
		}
		if err := b.flush(); err != nil {
			return 0, err
		}
	}
	return all, nil
}

func (b *blocks) flush() error {
	if err := b.ctx.Err(); err != nil {
		return err
	}
	_, err := b.w.Write(b.buf)
	if b.pause != nil && err == nil {
		b.pause(len(b.buf))
	}
	b.buf = b.buf[:0]
	return err
}
