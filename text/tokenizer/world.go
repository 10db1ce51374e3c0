package tokenizer

import (
	"fmt"
	"strconv"
)

// world is RWKV's tokenizer: of the tokens that start the rest of a text, which are any
// bytes, the longest is the next one.
type world struct{ trie trie }

func newWorld(v *vocab) (*world, error) {
	m, total := &world{}, 0
	for id, s := range v.text {
		if v.typ[id] == tokNormal {
			total += len(s)
		}
	}
	if total > maxTrieBytes {
		return nil, fmt.Errorf("%d bytes of token text, at most %d are supported", total, maxTrieBytes)
	}
	m.trie.init(total / 4)
	for id, s := range v.text {
		if v.typ[id] == tokNormal {
			m.trie.insert(s, int32(id))
		}
	}
	return m, nil
}

// encode leaves out bytes that no token starts with: the original has one for each.
func (m *world) encode(_ *scratch, dst []int32, piece string) []int32 {
	for at := 0; at < len(piece); {
		best, end := int32(-1), at+1
		for i, node := at, int32(0); i < len(piece); i++ {
			if node = m.trie.child(node, piece[i]); node < 0 {
				break
			}
			if id := m.trie.token[node]; id >= 0 {
				best, end = id, i+1
			}
		}
		if best >= 0 {
			dst = append(dst, best)
		}
		at = end
	}
	return dst
}

// ggufWorld makes the tokenizer, whose texts are those of unescapeWorld.
func (t *Tokenizer) ggufWorld() (err error) {
	t.kind = "world"
	t.model, err = newWorld(t.vocab)
	return err
}

// unescapeWorld returns the bytes of tokens that GGUF files spell as Python spells
// strings of bytes.
func unescapeWorld(texts []string) ([]string, error) {
	out := make([]string, len(texts))
	var b []byte
	for id, s := range texts {
		b = b[:0]
		for i := 0; i < len(s); i++ {
			if s[i] != '\\' {
				b = append(b, s[i])
				continue
			}
			if i++; i == len(s) {
				return nil, fmt.Errorf("token %d (%.60q): expected a character behind the last \\", id, s)
			}
			switch s[i] {
			case 't':
				b = append(b, '\t')
			case 'n':
				b = append(b, '\n')
			case 'r':
				b = append(b, '\r')
			case 'x':
				if i+2 >= len(s) {
					return nil, fmt.Errorf("token %d (%.60q): expected two digits behind \\x", id, s)
				}
				v, err := strconv.ParseUint(s[i+1:i+3], 16, 8)
				if err != nil {
					return nil, fmt.Errorf("token %d (%.60q): expected two digits behind \\x, found %q", id, s, s[i+1:i+3])
				}
				b, i = append(b, byte(v)), i+2
			default:
				b = append(b, s[i])
			}
		}
		out[id] = string(b)
	}
	return out, nil
}
