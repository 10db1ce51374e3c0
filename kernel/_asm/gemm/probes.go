package main

import (
	"github.com/mmcloughlin/avo/attr"
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"ridge/kernel/_asm/bf16"
)

// readProbe generates a loop that reads memory and does nothing else: the
// bound of kernels that stream weights. It prefetches as they do.
func readProbe() {
	function("readProbeAVX2", "func(p *byte, n int, ahead int) uint64", "readProbeAVX2 reads n bytes, a multiple of 256 above 0, and prefetches what lies ahead bytes behind them.")
	p := Load(Param("p"), GP64())
	n := Load(Param("n"), GP64())
	ahead := Load(Param("ahead"), GP64())
	acc := []reg.VecPhysical{reg.Y0, reg.Y1, reg.Y2, reg.Y3}
	for _, y := range acc {
		VPXOR(y, y, y)
	}
	Label("loop")
	for i := range 8 {
		if i%2 == 0 {
			PREFETCHT0(Mem{Base: p, Index: ahead, Scale: 1, Disp: 32 * i})
		}
		VPXOR(Mem{Base: p, Disp: 32 * i}, acc[i%4], acc[i%4])
	}
	ADDQ(U32(256), p)
	SUBQ(U32(256), n)
	JNE(LabelRef("loop"))
	VPXOR(reg.Y1, reg.Y0, reg.Y0)
	VPXOR(reg.Y3, reg.Y2, reg.Y2)
	VPXOR(reg.Y2, reg.Y0, reg.Y0)
	r := GP64()
	VMOVQ(reg.X0, r)
	VZEROUPPER()
	Store(r, ReturnIndex(0))
	RET()
}

// probes512 and probesAVX2 generate loops of nothing but integer (or float)
// products: the bound of kernels that multiply many rows.
func probes512() {
	function("dotProbeAVX512", "func(n int)", "dotProbeAVX512 does n*16 VPDPBUSD on 64 bytes.")
	n := Load(Param("n"), GP64())
	clearZ(zmms[:18]...)
	Label("loop")
	for i := range 16 {
		VPDPBUSD(zmms[16], zmms[17], zmms[i])
	}
	DECQ(n)
	JNE(LabelRef("loop"))
	VZEROUPPER()
	RET()

	function("fmaProbeAVX512", "func(n int)", "fmaProbeAVX512 does n*16 VFMADD231PS on 16 floats.")
	n = Load(Param("n"), GP64())
	clearZ(zmms[:18]...)
	Label("loop")
	for i := range 16 {
		VFMADD231PS(zmms[16], zmms[17], zmms[i])
	}
	DECQ(n)
	JNE(LabelRef("loop"))
	VZEROUPPER()
	RET()
}

// probesAVX2 generates the loop that reads, too, which serves both tiers.
func probesAVX2() {
	readProbe()

	function("dotProbeAVX2", "func(n int)", "dotProbeAVX2 does n*12 VPMADDUBSW on 32 bytes, each with a sum of its own.")
	n := Load(Param("n"), GP64())
	for i := range 16 {
		y := zmms[i].AsY()
		VPXOR(y, y, y)
	}
	Label("loop")
	for i := range 12 {
		y := zmms[i].AsY()
		VPMADDUBSW(reg.Y14, reg.Y15, reg.Y13)
		VPADDW(reg.Y13, y, y)
	}
	DECQ(n)
	JNE(LabelRef("loop"))
	VZEROUPPER()
	RET()

	function("fmaProbeAVX2", "func(n int)", "fmaProbeAVX2 does n*12 VFMADD231PS on 8 floats.")
	n = Load(Param("n"), GP64())
	for i := range 16 {
		y := zmms[i].AsY()
		VPXOR(y, y, y)
	}
	Label("loop")
	for i := range 12 {
		VFMADD231PS(reg.Y14, reg.Y15, zmms[i].AsY())
	}
	DECQ(n)
	JNE(LabelRef("loop"))
	VZEROUPPER()
	RET()
}

// pairProbe generates a loop of nothing but products of pairs of bfloat16 values.
func pairProbe() {
	function("brainProbeAVX512", "func(n int)", "brainProbeAVX512 does n*16 VDPBF16PS on 32 values.")
	n := Load(Param("n"), GP64())
	clearZ(zmms[:18]...)
	Label("loop")
	for i := range 16 {
		bf16.DotPairs(zmms[16], zmms[17], zmms[i])
	}
	DECQ(n)
	JNE(LabelRef("loop"))
	VZEROUPPER()
	RET()
}

// tileProbe generates the same with tile registers, as mulBrainTiles uses them.
func tileProbe() {
	function("brainProbeAMX", "func(n int, cfg *byte)", "brainProbeAMX does n*4 TDPBF16PS on tiles of the shapes that cfg has, which are whole ones.")
	Load(Param("cfg"), reg.RAX)
	bf16.Config(reg.RAX)
	n := Load(Param("n"), reg.RCX)
	for t := range 8 {
		bf16.Zero(t)
	}
	Label("loop")
	for r := range 2 {
		for g := range 2 {
			bf16.Product(tileSums+2*r+g, tileActs+r, tileWeights+g)
		}
	}
	DECQ(n)
	JNE(LabelRef("loop"))
	bf16.Release()
	VZEROUPPER()
	RET()
}

// cpuVendor generates the reading of the processor's maker.
func cpuVendor() {
	TEXT("cpuVendor", attr.NOSPLIT, "func() uint32")
	Doc("cpuVendor returns the first four letters of the processor's vendor, the first in the lowest byte.")
	XORL(reg.EAX, reg.EAX)
	XORL(reg.ECX, reg.ECX)
	CPUID()
	Store(reg.EBX, ReturnIndex(0))
	RET()
}
