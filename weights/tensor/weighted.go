package tensor

// EncodeWeighted is Encode of one row with the weight that the error of each value
// has, nil for none. Formats that have no use for them encode as Encode does.
func (d DType) EncodeWeighted(dst []byte, src, weights []float32) error {
	return d.Encode(dst, src)
}
