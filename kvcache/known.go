package kvcache

import "slices"

// Known returns how many of tokens begin a sequence that the tree has under
// salt, whether or not layers can be continued there, and up to most of the
// tokens that this sequence has in place of the next ones. It has no effect.
func (t *Tree) Known(salt string, tokens []int32, most int) (n int, instead []int32) {
	n = t.walk(salt, tokens)
	if len(t.path) == 0 {
		return 0, nil
	}
	for at := t.path[len(t.path)-1]; at != none && len(instead) < most; at = t.nodes[at].child {
		nd := &t.nodes[at]
		rest := nd.tokens[min(max(n-nd.start, 0), len(nd.tokens)):]
		instead = append(instead, rest[:min(len(rest), most-len(instead))]...)
	}
	return n, slices.Clip(instead)
}
