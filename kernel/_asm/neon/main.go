// Command neon generates the kernels of package kernel for arm64: those of
// packed weights, elementwise operations and attention, for processors with
// dot products of bytes. Avo has no arm64, so the assembly is written as text;
// the definitions are those in plain Go.
package main

import (
	"fmt"
	"strings"

	"ridge/kernel/_asm/dispatch"
	"ridge/kernel/_asm/parts"
	"ridge/kernel/internal/layout"
)

func main() {
	parts.Parse()
	generate()
	for _, name := range out.order {
		parts.WriteText(name+"_arm64.s", "neon", "#include \"textflag.h\"\n"+out.files[name].text.String())
		parts.WriteGo(name+"_arm64.go", "neon", "package kernel\n"+out.files[name].stubs.String())
	}
	parts.WriteGo("gemm_table_arm64.go", "neon", tables())
	parts.WriteGo("attn_table_arm64.go", "neon", attnTable())
	parts.WriteGo("elem_tier_arm64.go", "neon", dispatch.Source("kernel", "", []string{"NEON"}, out.ops))
}

func generate() {
	for _, f := range layout.Formats {
		out.begin("gemm_" + strings.ToLower(f.Name))
		for mr := 1; mr <= maxDirect; mr++ {
			mulDirect(f, mr)
		}
		unpack(f)
	}
	out.begin("gemm_panels")
	for _, f := range layout.Forms {
		for mr := 1; mr <= maxPanel; mr++ {
			mulPanel(f, mr)
		}
	}
	for _, p := range plains {
		out.begin("gemm_" + strings.ToLower(p.name))
		for mr := 1; mr <= maxPlain; mr++ {
			mulPlain(p, mr)
		}
	}
	out.begin("quantize")
	quantize()
	out.begin("probe")
	probes()
	out.ops = nil // those from here on are called by their operation, not by tables
	elementwise()
	out.begin("kv")
	topKV()
	encodeI8()
	transpose("transposeBytes", 1)
	transpose("transposeHalves", 2)
	ops := out.ops
	attention()
	out.ops = ops
}

func elementwise() {
	out.begin("elem")
	arithmetic()
	norms()
	activations()
	reductions()
	index()
	atLeast()
	rope()
	ropePairs()
	conversions()
}

// tables returns the Go tables that find a kernel by format and size.
func tables() string {
	var b strings.Builder
	b.WriteString("package kernel\n\nimport (\n\"ridge/kernel/internal/layout\"\n\"ridge/weights/tensor\"\n)\n")
	perFormat := func(name, typ string, row func(f format) string) {
		fmt.Fprintf(&b, "\nvar %s = [numTypes]%s{\n", name, typ)
		for _, f := range layout.Formats {
			for _, name := range f.Names() {
				fmt.Fprintf(&b, "tensor.%s: %s,\n", name, row(f))
			}
		}
		b.WriteString("}\n")
	}
	perFormat("packedNEON", "[]mulFunc", func(f format) string {
		return row(maxDirect, func(mr int) string { return mulName(f, mr) })
	})
	perFormat("unpackNEON", "unpackFunc", func(f format) string { return unpackName(f) + "NEON" })
	b.WriteString("\nvar panelNEON = [4][]panelFunc{\n")
	for _, f := range layout.Forms {
		fmt.Fprintf(&b, "layout.%v: %s,\n", f, row(maxPanel, func(mr int) string { return panelName(f, mr) }))
	}
	b.WriteString("}\n\nvar plainNEON = [numTypes][]plainFunc{\n")
	for _, p := range plains {
		fmt.Fprintf(&b, "tensor.%s: %s,\n", p.name, row(maxPlain, func(mr int) string { return plainName(p, mr) }))
	}
	b.WriteString("}\n")
	return b.String()
}

// row returns a composite literal of the kernels for 1 to n rows.
func row(n int, name func(mr int) string) string {
	text := "{nil"
	for mr := 1; mr <= n; mr++ {
		text += ", " + name(mr) + "NEON"
	}
	return text + "}"
}
