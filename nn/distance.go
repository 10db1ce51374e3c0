package nn

import (
	"math"

	"ridge/kernel"
)

// Distance is what is added to scores by how far a key is from the query, per
// head.
type Distance struct {
	table        []float32 // in units of log2, see kernel.AttnBias
	stride, zero int
}

// NewDistance returns the biases of the given heads for texts of at most length
// tokens: bias gives that of a key at the position of the query plus distance.
func NewDistance(heads, length int, bias func(head, distance int) float32) *Distance {
	d := &Distance{stride: 2*length + kernel.AttnBiasPad, zero: length}
	d.table = make([]float32, heads*d.stride)
	for h := range heads {
		for distance := -length; distance < length; distance++ {
			d.table[h*d.stride+d.zero+distance] = bias(h, distance) * math.Log2E
		}
	}
	return d
}

// BothWaysAlibi returns ALiBi for attention in both directions (Press et al. 2022,
// as JinaBERT has it, arXiv 2310.19923): minus the slope of each head times the
// distance.
func BothWaysAlibi(slopes []float32, length int) *Distance {
	return NewDistance(len(slopes), length, func(head, distance int) float32 {
		return -slopes[head] * float32(max(distance, -distance))
	})
}

// Bucket returns the bucket of a distance in both directions, as T5 numbers them
// (Raffel et al. 2020): half of the buckets are of keys behind the query; of each
// half, the first half has a distance each, the others grow up to the largest one.
func Bucket(distance, buckets, largest int) int {
	n, bucket := -distance, 0
	buckets /= 2
	if n < 0 {
		bucket, n = buckets, -n
	}
	exact := buckets / 2
	if n < exact {
		return bucket + n
	}
	far := exact + int(math.Log(float64(n)/float64(exact))/math.Log(float64(largest)/float64(exact))*float64(buckets-exact))
	return bucket + min(far, buckets-1)
}
