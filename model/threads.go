package model

import (
	"cmp"

	"ridge/internal/pool"
)

// narrowRows is the most rows of a step that count as decoding: up to so many
// the kernels read the weights once, and memory is the limit. See
// docs/kernels.md.
const narrowRows = 8

// widths are the numbers of threads that compute a step: up to narrowRows rows,
// and more.
type widths struct{ narrow, wide int }

// widths returns what the options ask for.
func (o *Options) widths() widths {
	w := widths{narrow: max(o.Workers, 0), wide: max(o.BatchWorkers, 0)}
	if w.narrow == 0 {
		w.narrow = cmp.Or(max(o.Measured.Decode, 0), pool.DefaultWorkers())
		w.wide = cmp.Or(w.wide, max(o.Measured.Batch, 0))
	}
	w.wide = cmp.Or(w.wide, w.narrow)
	return w
}

// startPool starts the threads, on processors next to memory for the weights
// where the machine makes a difference.
func (m *Model) startPool(o *Options) error {
	m.widths = o.widths()
	most := max(m.widths.narrow, m.widths.wide)
	size := m.src.size()
	pl, err := pool.Place(most, size, o.Pin)
	if err == nil && pl.Nodes > 1 && o.Workers <= 0 && o.BatchWorkers <= 0 {
		// The usual number is for one memory node, and none has room.
		pl, err = pool.Place(0, size, o.Pin)
		m.widths = widths{pl.Workers, pl.Workers}
	}
	if err != nil {
		return err
	}
	m.pool, err = pool.NewPlaced(pl)
	if err != nil && !o.Pin {
		// Nobody asked for what the system does not allow here.
		m.pool, err = pool.New(pl.Workers), nil
	}
	return err
}

// setWidth makes the threads that are best for a step of n rows compute it.
func (m *Model) setWidth(n int) {
	if n <= narrowRows {
		m.pool.SetWidth(m.widths.narrow)
	} else {
		m.pool.SetWidth(m.widths.wide)
	}
}
