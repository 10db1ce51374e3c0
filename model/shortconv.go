package model

import (
	"fmt"

	"ridge/nn"
)

// convConfig says which layers have a short convolution in place of attention.
type convConfig struct {
	Layers []bool
	Taps   int // rows of a sum
}

// validate checks that the numbers fit together.
func (x *convConfig) validate(layers int) error {
	switch {
	case x.Layers == nil:
		return nil
	case len(x.Layers) != layers:
		return fmt.Errorf("layers that have a convolution or not: expected %d, found %d", layers, len(x.Layers))
	case x.Taps < 2 || x.Taps > 64:
		return fmt.Errorf("rows of a short convolution: expected 2 to 64, found %d", x.Taps)
	}
	return nil
}

// shortConv builds the short convolution of a layer.
func (b *builder) shortConv(at func(string) string) *nn.ShortConv {
	hidden, taps := b.c.Hidden, b.c.Conv.Taps
	c := &nn.ShortConv{
		In: b.linear(at("shortconv.in_proj"), 3*hidden, hidden), Out: b.linear(at("shortconv.out_proj"), hidden, hidden),
		Bias: b.bias(at("shortconv.conv.bias"), hidden),
	}
	m, ok := b.find(at("shortconv.conv.weight"), hidden, taps)
	if !ok {
		b.missing(hidden, taps, at("shortconv.conv.weight"))
	}
	c.Taps = make([][]float32, taps)
	for k := range c.Taps {
		c.Taps[k] = make([]float32, hidden)
	}
	row := make([]float32, taps)
	for i := 0; ok && !b.shapes && i < hidden; i++ {
		m.DecodeRow(row, i)
		for k, v := range row {
			c.Taps[k][i] = v
		}
	}
	return c
}
