package compress

import "ridge/weights/gguf"

// LayerMemory returns about how many bytes a method takes for the layer of f that takes
// most, beside the program and the model that computes the text: heap for its weights as
// floats, what becomes of them, the sums of its inputs and what is derived of these, and
// mapped for the part of the model's weights that are being read.
func LayerMemory(f *gguf.File) (heap, mapped int64) {
	type layer struct{ weights, sums, widest, bytes int64 }
	layers, largest := map[int]*layer{}, int64(0)
	for _, t := range f.Tensors() {
		largest = max(largest, int64(t.Size))
		l := layers[layerOf(t.Name)]
		if l == nil {
			l = &layer{}
			layers[layerOf(t.Name)] = l
		}
		l.bytes += int64(t.Size)
		if len(t.Dims) == 2 {
			square := int64(t.Dims[0]*t.Dims[0]) * 4 // half of it, of float64
			l.weights += int64(t.Elements()) * 5     // floats, and at most a byte of output
			l.widest = max(l.widest, square)
			if l.sums < 3*square {
				l.sums += square // of three kinds of inputs at most that are as wide
			}
		}
	}
	for i, l := range layers {
		if i >= 0 {
			heap = max(heap, l.weights+l.sums+l.widest)
			mapped = max(mapped, 2*l.bytes)
		}
	}
	return heap, max(mapped, largest)
}
