package skip

import (
	"encoding/json"
	"fmt"
	"io"

	"ridge/model"
)

// file is the form in which a finding is stored.
type file struct {
	Fingerprint string  `json:"fingerprint"` // of the model
	Parts       []int   `json:"parts"`       // by layer: 1 without its mixer, 2 without its FFN, 3 without both
	Share       float64 `json:"share"`
	Cost        float64 `json:"cost"`
	Speed       float64 `json:"speed"`
}

// Write writes what was found for m.
func Write(w io.Writer, m *model.Model, f *Finding) error {
	x := file{m.Fingerprint(), nil, f.Share, f.Cost, f.Speed}
	for _, p := range f.Parts {
		x.Parts = append(x.Parts, int(p))
	}
	enc := json.NewEncoder(w)
	return enc.Encode(&x)
}

// Read reads what was found for m.
func Read(r io.Reader, m *model.Model) (parts []uint8, err error) {
	const most = 1 << 20
	var x file
	dec := json.NewDecoder(io.LimitReader(r, most))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&x); err != nil {
		return nil, fmt.Errorf("skip: expected a file that ridge spec search has written: %w", err)
	}
	if own := m.Fingerprint(); x.Fingerprint != own {
		return nil, fmt.Errorf("skip: fingerprint: expected that of the model, %.12s…, found %.12s…", own, x.Fingerprint)
	}
	for i, p := range x.Parts {
		if p < 0 || p > both {
			return nil, fmt.Errorf("skip: parts: layer %d: expected 0 to %d, found %d", i, both, p)
		}
		parts = append(parts, uint8(p))
	}
	return parts, nil
}
