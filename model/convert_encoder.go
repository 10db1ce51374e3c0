package model

// poolingTypes are GGUF's numbers of poolings.
var poolingTypes = map[Pooling]uint32{PoolingMean: 1, PoolingCLS: 2, PoolingLast: 3, PoolingRank: 4}

// encoderKeys sets the keys of models that read texts in both directions, and how
// states become an embedding.
func encoderKeys(set func(string, any), c *Config, d *Defaults) {
	if d.Pooling == PoolingRank && d.Labels != nil {
		set("classifier.output_labels", d.Labels)
	}
	if n, ok := poolingTypes[d.Pooling]; ok {
		set("pooling_type", n)
	}
	if !c.Encoder.Both {
		return
	}
	set("attention.causal", false)
	if c.Encoder.Reach != nil && len(c.Rope) > 1 {
		set("rope.freq_base_swa", float32(c.Rope[1].Base))
	}
}
