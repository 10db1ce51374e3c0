package model

import "ridge/nn"

// ExpertLoad is how the rows of a layer were spread over its experts since the
// model was opened.
type ExpertLoad struct {
	Layer   int
	Experts int
	Chosen  int64 // experts of all rows together
	Busiest int64 // rows of the expert that most rows chose
	Idle    int   // experts that no row chose
	Read    int64 // experts read: in a step one for all rows that chose it
	Fetched int64 // of these, the experts that a file was read for, see Beyond
}

// Imbalance returns how many times its share the busiest expert has, 1 if all are
// chosen alike, 0 if nothing was chosen.
func (l *ExpertLoad) Imbalance() float64 {
	if l.Chosen == 0 {
		return 0
	}
	return float64(l.Busiest) * float64(l.Experts) / float64(l.Chosen)
}

// ExpertLoads returns the load of each layer with experts. It must not be called
// during Forward.
func (m *Model) ExpertLoads() []ExpertLoad {
	var out []ExpertLoad
	for i := range m.net.Layers {
		x := m.net.Layers[i].mixture()
		if x == nil {
			continue
		}
		l := ExpertLoad{Layer: i, Experts: len(x.Experts), Read: x.Load().Read, Fetched: x.Load().Fetched, Idle: len(x.Experts)}
		for _, rows := range x.Load().Rows {
			l.Chosen += rows
			l.Busiest = max(l.Busiest, rows)
			if rows > 0 {
				l.Idle--
			}
		}
		out = append(out, l)
	}
	return out
}

// mixture returns the layer's mixture of experts, nil if it has none.
func (l *Layer) mixture() *nn.MoE {
	for _, f := range [2]nn.FFN{l.FFN, l.Beside} {
		switch x := f.(type) {
		case *nn.MoE:
			return x
		case *nn.EarlyMoE:
			return &x.MoE
		case *nn.Dual:
			return &x.Mixture.MoE
		}
	}
	return nil
}
