package main

import (
	"os"
	"strconv"
	"strings"
	"testing"
)

// TestEncodings compares instructions with what LLVM's assembler made of their
// text (llvm-mc -triple=aarch64 -mattr=+dotprod -show-encoding, LLVM 14): four
// of every form with different registers. Of every form in use one must be
// compared.
func TestEncodings(t *testing.T) {
	golden, err := os.ReadFile("testdata/llvm-mc.txt")
	if err != nil {
		t.Fatal(err)
	}
	generate()
	known := map[string]bool{}
	for line := range strings.Lines(string(golden)) {
		hex, text, _ := strings.Cut(strings.TrimSpace(line), " ")
		want, err := strconv.ParseUint(hex, 16, 32)
		if err != nil {
			t.Fatal(err)
		}
		got, used := out.words[text]
		if used && got != uint32(want) {
			t.Errorf("%s: %#08x, want %#08x", text, got, want)
		}
		known[shape(text)] = known[shape(text)] || used
	}
	for text := range out.words {
		if !known[shape(text)] {
			t.Errorf("%s: none like it in the golden file", text)
		}
	}
}

// shape returns an instruction's mnemonic and its kinds of operands.
func shape(text string) string {
	name, operands, _ := strings.Cut(text, " ")
	return name + strings.Map(func(r rune) rune {
		if r == ' ' || r >= '0' && r <= '9' {
			return -1
		}
		return r
	}, operands)
}
