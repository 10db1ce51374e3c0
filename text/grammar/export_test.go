package grammar

import "fmt"

// What tests outside the package see of its inside.

const (
	MaxRegexSource = maxRegexSource
	MaxStates      = maxStates
)

// States returns the number of states.
func (d *RuneDFA) States() int { return len(d.final) }

// SetLimit bounds the bytes that the grammar remembers.
func (g *Grammar) SetLimit(bytes int) { g.m.limit = bytes }

// Memory returns the bytes that the grammar remembers.
func (g *Grammar) Memory() int { return g.m.memory }

// Vocabulary returns the vocabulary of the grammar.
func (s *State) Vocabulary() *Vocabulary { return s.m.v }

// At returns what is equal at the same position only.
func (s *State) At() any { return s.at }

// At returns what is equal at the same position only.
func (p Snapshot) At() any { return p.at }

// FindLocal returns a function that finds, from nothing, the mask of the state.
func (s *State) FindLocal() func() {
	q := s.at.items[0].q
	return func() {
		s.m.begin()
		s.m.findLocal(q)
	}
}

// Nodes returns the size of the trie.
func (v *Vocabulary) Nodes() int { return len(v.nodes) }

// Trie returns the tokens of the trie with the bytes on their paths, and an
// error if a subtree has a wrong size or a token is there twice.
func (v *Vocabulary) Trie() (map[int32]string, error) {
	tokens := map[int32]string{}
	var path []byte
	for i := range v.nodes {
		n := &v.nodes[i]
		if i == 0 {
			continue
		}
		path = append(path[:n.depth-1], n.b)
		if int(n.size) < 1 || i+int(n.size) > len(v.nodes) {
			return nil, fmt.Errorf("node %d: size %d", i, n.size)
		}
		for id := n.token; id >= 0; {
			if _, twice := tokens[id]; twice {
				return nil, fmt.Errorf("token %d is there twice", id)
			}
			tokens[id] = string(path)
			if v.same == nil {
				break
			}
			id = v.same[id]
		}
	}
	return tokens, nil
}
