// Package dispatch writes the Go functions that call the kernel of the tier in
// use, one for each elementwise operation. They are written for each
// architecture, so that none names kernels that it does not have.
package dispatch

import (
	"fmt"
	"slices"
	"strings"
)

// Op is an operation and the tiers that have a kernel for it.
type Op struct {
	Name, Doc      string
	Params, Result string // like "x *float32, n int" and "float32"
	Tiers          []string
}

// Add notes that the tier has a kernel for the operation.
func Add(ops []Op, tier string, op Op) []Op {
	for i := range ops {
		if ops[i].Name == op.Name {
			ops[i].Tiers = append(ops[i].Tiers, tier)
			return ops
		}
	}
	op.Tiers = []string{tier}
	return append(ops, op)
}

// partial are the operations whose kernels leave the rest to plain Go: what is
// more than a multiple of 8 elements, on AVX2 or, if everywhere is set, on all
// tiers, which then want at least 8.
var partial = map[string]struct{ everywhere bool }{
	"decodeF16": {}, "encodeKV": {}, "decodeI8": {},
	"topKV": {true}, "encodeI8": {true},
}

// Source returns the Go code of a package for an architecture with the given tiers, the
// best first; without tiers no operation has a kernel.
func Source(pkg, constraint string, tiers []string, ops []Op) string {
	var b strings.Builder
	if constraint != "" {
		fmt.Fprintf(&b, "//go:build %s\n\n", constraint)
	}
	fmt.Fprintf(&b, "package %s\n", pkg)
	if len(tiers) > 0 {
		b.WriteString("\nimport \"ridge/internal/cpu\"\n")
	}
	for _, op := range ops {
		op.write(&b, tiers)
	}
	return b.String()
}

func (op *Op) write(b *strings.Builder, tiers []string) {
	rest, part := partial[op.Name]
	says, none, done := "reports whether the tier in use has a kernel that does", "false", "true"
	typ := "bool"
	if part {
		says = "returns how many of the n elements the tier in use has a kernel for"
		none, done, typ = "0", "n", "int"
	}
	if op.Result != "" {
		none, done, typ = "0, "+none, "r, "+done, fmt.Sprintf("(r %s, done %s)", op.Result, typ)
	}
	fmt.Fprintf(b, "\n// %sTier %s It %s.\nfunc %sTier(%s) %s {\n", op.Name, op.Doc, says, op.Name, op.Params, typ)
	if len(tiers) == 0 {
		fmt.Fprintf(b, "return %s\n}\n", none)
		return
	}
	if rest.everywhere {
		fmt.Fprintf(b, "if n &^= 7; n == 0 {\nreturn %s\n}\n", none)
	}
	b.WriteString("switch cpu.Vectors() {\n")
	for _, tier := range tiers {
		kernel := tier
		if !slices.Contains(op.Tiers, tier) { // a better one runs the kernels of one below it, too
			if kernel = op.Tiers[0]; tier == tiers[len(tiers)-1] {
				continue
			}
		}
		fmt.Fprintf(b, "case cpu.%s:\n", tier)
		if part && tier == "AVX2" && !rest.everywhere {
			b.WriteString("n &^= 7\n")
		}
		if op.Result != "" {
			b.WriteString("r = ")
		}
		fmt.Fprintf(b, "%s%s(%s)\n", op.Name, kernel, op.arguments())
	}
	fmt.Fprintf(b, "default:\nreturn %s\n}\nreturn %s\n}\n", none, done)
}

// arguments returns the names of the parameters.
func (op *Op) arguments() string {
	var names []string
	for _, p := range strings.Split(op.Params, ", ") {
		name, _, _ := strings.Cut(p, " ")
		names = append(names, name)
	}
	return strings.Join(names, ", ")
}
