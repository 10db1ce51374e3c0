package main

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"
)

// numpy's format of arrays, version 1: github.com/numpy/numpy, numpy/lib/format.py.

const (
	npyMagic = "\x93NUMPY\x01\x00"
	npyHead  = 128 // bytes before the rows: room for any number of them
)

// npyVectors writes rows of float32.
type npyVectors struct {
	w          io.Writer
	rows, cols int
}

func (n *npyVectors) write(e *embedded) error {
	if n.rows == 0 {
		n.cols = len(e.Embedding)
	}
	n.rows++
	b := make([]byte, 0, 4*n.cols)
	for _, v := range e.Embedding {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	_, err := n.w.Write(b)
	return err
}

// header is what goes before the rows.
func (n *npyVectors) header() []byte {
	h := fmt.Sprintf("{'descr': '<f4', 'fortran_order': False, 'shape': (%d, %d), }", n.rows, n.cols)
	b := binary.LittleEndian.AppendUint16([]byte(npyMagic), npyHead-10)
	return append(append(b, h...), []byte(strings.Repeat(" ", npyHead-11-len(h))+"\n")...)
}

// writeNpy writes what job gives to a new file. How many rows there are is known
// behind the last one.
func writeNpy(w io.Writer, job func(vectorWriter) error) error {
	f, ok := w.(io.WriteSeeker)
	if !ok {
		return fmt.Errorf("expected a file, found %T", w)
	}
	if _, err := w.Write(make([]byte, npyHead)); err != nil {
		return err
	}
	b := bufio.NewWriter(w)
	n := &npyVectors{w: b}
	if err := job(n); err != nil {
		return err
	}
	if err := b.Flush(); err != nil {
		return err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	_, err := w.Write(n.header())
	return err
}

var npyShape = regexp.MustCompile(`'shape': \((\d{1,12}), (\d{1,7})\)`)

// readNpy gives the rows of a file to got. An array of other numbers, or of another
// order, is refused.
func readNpy(r io.Reader, got func(v []float32) error) error {
	var head [10]byte
	if _, err := io.ReadFull(r, head[:]); err != nil || !bytes.HasPrefix(head[:], []byte(npyMagic)) {
		return fmt.Errorf("expected an array of numpy, version 1, found none")
	}
	text := make([]byte, binary.LittleEndian.Uint16(head[8:]))
	if _, err := io.ReadFull(r, text); err != nil {
		return fmt.Errorf("header: %w", err)
	}
	shape := npyShape.FindSubmatch(text)
	if shape == nil || !bytes.Contains(text, []byte("'descr': '<f4'")) || !bytes.Contains(text, []byte("'fortran_order': False")) {
		return fmt.Errorf("expected rows of little-endian float32, found %q", bytes.TrimSpace(text))
	}
	rows, _ := strconv.Atoi(string(shape[1]))
	cols, _ := strconv.Atoi(string(shape[2]))
	b, v := make([]byte, 4*cols), make([]float32, cols)
	for i := range rows {
		if _, err := io.ReadFull(r, b); err != nil {
			return fmt.Errorf("row %d of %d: %w", i, rows, err)
		}
		for j := range v {
			v[j] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*j:]))
		}
		if err := got(v); err != nil {
			return err
		}
	}
	return nil
}
