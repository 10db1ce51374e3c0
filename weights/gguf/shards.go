package gguf

import "fmt"

// SaveShards writes the file as a split model, PREFIX-00001-of-0000N.gguf and
// so on, with at most maxBytes of tensor data in each part, or one tensor if
// that is larger. It returns the paths in order. The first part, which holds the
// metadata, is written last: until it is there the model cannot be opened by it.
func (b *Builder) SaveShards(prefix string, maxBytes uint64) ([]string, error) {
	parts := b.split(maxBytes)
	if len(parts) > maxSplits {
		return nil, fault(prefix, "number of parts", fmt.Sprintf("at most %d", maxSplits), fmt.Sprint(len(parts)))
	}
	paths := make([]string, len(parts))
	for no := len(parts) - 1; no >= 0; no-- {
		paths[no] = splitPath(prefix, no, len(parts))
		if err := parts[no].Save(paths[no]); err != nil {
			return nil, err
		}
	}
	return paths, nil
}

// split deals the tensors out to builders of one part each.
func (b *Builder) split(maxBytes uint64) []*Builder {
	first := NewBuilder()
	first.version = b.version
	for _, k := range b.keys {
		first.put(k, b.values[k])
	}
	parts, size := []*Builder{first}, uint64(0)
	for _, t := range b.tensors {
		last := parts[len(parts)-1]
		if len(last.tensors) > 0 && (t.Size > maxBytes || size > maxBytes-t.Size) {
			last = NewBuilder()
			last.version = b.version
			parts, size = append(parts, last), 0
		}
		last.tensors = append(last.tensors, t)
		size = min(size+t.Size, maxBytes)
	}
	for no, p := range parts {
		p.alignment = b.alignment
		if a, ok := b.values[keyAlignment]; ok {
			p.put(keyAlignment, a)
		}
		p.put(keySplitNo, uint16(no))
		p.put(keySplitCount, uint16(len(parts)))
		p.put(keySplitTensors, int32(len(b.tensors)))
	}
	return parts
}
