package main

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"ridge/internal/testdata"
	"ridge/measure/machine"
	"ridge/measure/roofline"
)

// What plan says of memory is what a process takes that fills the contexts.
func TestPlanMemory(t *testing.T) {
	if machine.ReadProcess().Peak == 0 {
		t.Skip("skipped: the system does not tell the memory of a process")
	}
	const tiny = "../../internal/tinymodel/testdata/"
	cases := []struct {
		model         string
		context, seqs int
	}{
		{tiny + "llama/llama.gguf", 64, 1},
		{tiny + "qwen3moe/qwen3moe.gguf", 128, 2},
		{tiny + "lfm2", 128, 1},
	}
	for i, name := range []string{"smollm2", "gemma3", "qwen"} {
		t.Run(name, func(t *testing.T) { planMemory(t, testdata.Model(t, name), 200, 1+i%2) })
	}
	for _, c := range cases {
		t.Run(filepath.Base(c.model), func(t *testing.T) { planMemory(t, c.model, c.context, c.seqs) })
	}
}

// planMemory compares the prediction for seqs sequences with a process of its own.
func planMemory(t *testing.T, model string, context, seqs int) {
	t.Helper()
	ridge := func(v any, more ...string) {
		t.Helper()
		args := append([]string{"plan", model, "--ctx", strconv.Itoa(context), "--batch", strconv.Itoa(seqs), "-t", "2"}, more...)
		out, err := exec.Command("ridge", args...).Output()
		if err == nil {
			err = json.Unmarshal(out, v)
		}
		if err != nil {
			t.Fatalf("%v: %v", args, err)
		}
	}
	var plan roofline.Report
	var p machine.Process
	ridge(&plan, "--json", "--machine", "epyc-9654")
	ridge(&p, "--fill")
	total := plan.Memory.Total()
	err := float64(total)/float64(p.Peak) - 1
	t.Logf("%d sequences of %d: predicted %d KiB, measured %d, error %+.1f%%: %+v", seqs, context, total>>10, p.Peak>>10, 100*err, plan.Memory)
	// Of a tiny model the program is all: how much of it is in memory varies, most on
	// a machine that has other work.
	if allowed := max(p.Peak/20, 6<<20); total-p.Peak > allowed || p.Peak-total > allowed {
		t.Errorf("error %+.1f%%, want at most 5%%", 100*err)
	}
}
