package gguf

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"

	"ridge/internal/diag"
)

// valueType is the type id of a metadata value.
type valueType uint32

const (
	typeUint8 valueType = iota
	typeInt8
	typeUint16
	typeInt16
	typeUint32
	typeInt32
	typeFloat32
	typeBool
	typeString
	typeArray
	typeUint64
	typeInt64
	typeFloat64
	typeCount
)

var valueTypes = [typeCount]struct {
	name string
	size int // bytes of a value; the least for strings and arrays, an empty one's
}{
	typeUint8: {"uint8", 1}, typeInt8: {"int8", 1}, typeUint16: {"uint16", 2}, typeInt16: {"int16", 2},
	typeUint32: {"uint32", 4}, typeInt32: {"int32", 4}, typeFloat32: {"float32", 4}, typeBool: {"bool", 1},
	typeString: {"string", 8}, typeArray: {"array", 12}, typeUint64: {"uint64", 8}, typeInt64: {"int64", 8},
	typeFloat64: {"float64", 8},
}

// maxDepth is how deep arrays may be nested. No known file goes beyond 2; the
// limit keeps a hostile one from using the stack up.
const maxDepth = 8

// typeOf returns the type of a value, and of the elements if it is an array;
// false if GGUF has no such type.
func typeOf(v any) (typ, elem valueType, ok bool) {
	switch v.(type) {
	case uint8:
		return typeUint8, 0, true
	case int8:
		return typeInt8, 0, true
	case uint16:
		return typeUint16, 0, true
	case int16:
		return typeInt16, 0, true
	case uint32:
		return typeUint32, 0, true
	case int32:
		return typeInt32, 0, true
	case uint64:
		return typeUint64, 0, true
	case int64:
		return typeInt64, 0, true
	case float32:
		return typeFloat32, 0, true
	case float64:
		return typeFloat64, 0, true
	case bool:
		return typeBool, 0, true
	case string:
		return typeString, 0, true
	case []uint8:
		return typeArray, typeUint8, true
	case []int8:
		return typeArray, typeInt8, true
	case []uint16:
		return typeArray, typeUint16, true
	case []int16:
		return typeArray, typeInt16, true
	case []uint32:
		return typeArray, typeUint32, true
	case []int32:
		return typeArray, typeInt32, true
	case []uint64:
		return typeArray, typeUint64, true
	case []int64:
		return typeArray, typeInt64, true
	case []float32:
		return typeArray, typeFloat32, true
	case []float64:
		return typeArray, typeFloat64, true
	case []bool:
		return typeArray, typeBool, true
	case []string:
		return typeArray, typeString, true
	case []any:
		return typeArray, typeArray, true
	}
	return 0, 0, false
}

// describe names the type of a value, and a scalar's value, for a message.
func describe(v any) string {
	typ, elem, ok := typeOf(v)
	switch {
	case !ok:
		return fmt.Sprintf("%T", v)
	case typ == typeArray:
		return "an array of " + valueTypes[elem].name
	case typ == typeString:
		return "string " + diag.Quote(v.(string))
	}
	return fmt.Sprintf("%s %v", valueTypes[typ].name, v)
}

// cursor reads forward through a file. Its messages name the part of the file
// that spot says it is in.
type cursor struct {
	spot
	b   []byte
	off int
}

func (c *cursor) left() int { return len(c.b) - c.off }

// take returns the next n bytes, which must be n bytes of what.
func (c *cursor) take(n int, what string) ([]byte, error) {
	if n > c.left() {
		return nil, c.fault(what, plural(n, "byte"), fmt.Sprintf("%d before the end of the file", c.left()))
	}
	b := c.b[c.off : c.off+n : c.off+n]
	c.off += n
	return b, nil
}

func (c *cursor) u32(what string) (uint32, error) {
	b, err := c.take(4, what)
	if err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint32(b), nil
}

func (c *cursor) u64(what string) (uint64, error) {
	b, err := c.take(8, what)
	if err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint64(b), nil
}

// count reads a number of items that take at least size bytes each, and checks
// that the rest of the file can hold them.
func (c *cursor) count(size int, what string) (int, error) {
	n, err := c.u64(what)
	if err != nil {
		return 0, err
	}
	if most := uint64(c.left() / size); n > most {
		return 0, c.fault(what, fmt.Sprintf("at most %d in the %s left", most, plural(c.left(), "byte")), fmt.Sprint(n))
	}
	return int(n), nil
}

// str reads a string with its length.
func (c *cursor) str() (string, error) {
	n, err := c.count(1, "length")
	if err != nil {
		return "", err
	}
	b, err := c.take(n, "")
	return string(b), err
}

// value reads a value of type t.
func (c *cursor) value(t valueType) (any, error) {
	switch t {
	case typeString:
		return c.str()
	case typeArray:
		return c.array(1)
	}
	if t >= typeCount {
		return nil, c.badType("type", t)
	}
	b, err := c.take(valueTypes[t].size, "")
	if err != nil {
		return nil, err
	}
	switch t {
	case typeUint8:
		return b[0], nil
	case typeInt8:
		return int8(b[0]), nil
	case typeUint16:
		return binary.LittleEndian.Uint16(b), nil
	case typeInt16:
		return int16(binary.LittleEndian.Uint16(b)), nil
	case typeUint32:
		return binary.LittleEndian.Uint32(b), nil
	case typeInt32:
		return int32(binary.LittleEndian.Uint32(b)), nil
	case typeUint64:
		return binary.LittleEndian.Uint64(b), nil
	case typeInt64:
		return int64(binary.LittleEndian.Uint64(b)), nil
	case typeFloat32:
		return math.Float32frombits(binary.LittleEndian.Uint32(b)), nil
	case typeFloat64:
		return math.Float64frombits(binary.LittleEndian.Uint64(b)), nil
	}
	return b[0] == 1, c.checkBools(b)
}

func (c *cursor) badType(what string, t valueType) error {
	return c.fault(what, fmt.Sprintf("a value type from 0 to %d", typeCount-1), fmt.Sprint(uint32(t)))
}

// array reads an array that lies depth-1 arrays deep.
func (c *cursor) array(depth int) (any, error) {
	if depth > maxDepth {
		return nil, c.fault("", fmt.Sprintf("arrays nested at most %d deep", maxDepth), "more")
	}
	id, err := c.u32("element type")
	if err != nil {
		return nil, err
	}
	t := valueType(id)
	if t >= typeCount {
		return nil, c.badType("element type", t)
	}
	size := valueTypes[t].size
	n, err := c.count(size, "array length")
	if err != nil {
		return nil, err
	}
	switch t {
	case typeString:
		return c.strings(n)
	case typeArray:
		out := make([]any, n)
		for i := range out {
			if out[i], err = c.array(depth + 1); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	b, err := c.take(n*size, "")
	if err != nil {
		return nil, err
	}
	if t == typeBool {
		if err := c.checkBools(b); err != nil {
			return nil, err
		}
	}
	return numbers(t, b, n), nil
}

func (c *cursor) checkBools(b []byte) error {
	for _, x := range b {
		if x > 1 {
			return c.fault("", "0 or 1 for a bool", fmt.Sprint(x))
		}
	}
	return nil
}

// strings reads n strings with their lengths. Vocabularies hold hundreds of
// thousands, so they share one allocation; nothing is allocated before all
// lengths are known to be right.
func (c *cursor) strings(n int) ([]string, error) {
	start, total := c.off, 0
	for i := range n {
		if c.left() < 8 {
			_, err := c.take(8, fmt.Sprintf("string %d length", i))
			return nil, err
		}
		l := binary.LittleEndian.Uint64(c.b[c.off:])
		if l > uint64(c.left()-8) {
			_, err := c.count(1, fmt.Sprintf("string %d length", i))
			return nil, err
		}
		c.off += 8 + int(l)
		total += int(l)
	}
	out := make([]string, n)
	var all strings.Builder
	all.Grow(total)
	for i, p := 0, start; i < n; i++ {
		l := int(binary.LittleEndian.Uint64(c.b[p:]))
		at := all.Len()
		all.Write(c.b[p+8 : p+8+l])
		out[i] = all.String()[at:] // the bytes never move: Grow has made room for all
		p += 8 + l
	}
	return out, nil
}

// numbers converts n values of type t, a number or bool, from b.
func numbers(t valueType, b []byte, n int) any {
	switch t {
	case typeUint8:
		return append(make([]uint8, 0, n), b...)
	case typeInt8:
		return convert(b, n, 1, func(b []byte) int8 { return int8(b[0]) })
	case typeBool:
		return convert(b, n, 1, func(b []byte) bool { return b[0] == 1 })
	case typeUint16:
		return convert(b, n, 2, binary.LittleEndian.Uint16)
	case typeInt16:
		return convert(b, n, 2, func(b []byte) int16 { return int16(binary.LittleEndian.Uint16(b)) })
	case typeUint32:
		return convert(b, n, 4, binary.LittleEndian.Uint32)
	case typeInt32:
		return convert(b, n, 4, func(b []byte) int32 { return int32(binary.LittleEndian.Uint32(b)) })
	case typeFloat32:
		return convert(b, n, 4, func(b []byte) float32 { return math.Float32frombits(binary.LittleEndian.Uint32(b)) })
	case typeUint64:
		return convert(b, n, 8, binary.LittleEndian.Uint64)
	case typeInt64:
		return convert(b, n, 8, func(b []byte) int64 { return int64(binary.LittleEndian.Uint64(b)) })
	}
	return convert(b, n, 8, func(b []byte) float64 { return math.Float64frombits(binary.LittleEndian.Uint64(b)) })
}

func convert[T any](b []byte, n, size int, one func([]byte) T) []T {
	out := make([]T, n)
	for i := range out {
		out[i] = one(b[i*size:])
	}
	return out
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
