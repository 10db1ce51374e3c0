package main

import "ridge/model"

// tellQuantized tells what there is to know of how a checkpoint's weights are
// quantized, unless it could not be opened for err, which it returns.
func tellQuantized(m *model.Model, err error, tell func(string)) error {
	if err != nil {
		return err
	}
	_, notes := m.Quantized()
	for _, n := range notes {
		tell(n)
	}
	return nil
}
