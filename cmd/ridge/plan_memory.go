package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"sync"

	"github.com/spf13/cobra"

	"ridge"
	"ridge/engine"
	"ridge/measure/machine"
	"ridge/measure/roofline"
	"ridge/model"
)

// loadedMemory returns the memory of this process once it has read what a model is
// opened with beside its weights: the program and the tokenizer, as a process that
// runs the model has them.
func loadedMemory(path string) (int64, error) {
	t, err := model.OpenTokenizer(path)
	if err != nil {
		return 0, err
	}
	debug.FreeOSMemory() // how much is not collected yet is chance
	p := machine.ReadProcess()
	runtime.KeepAlive(t)
	return p.Anon + p.File, nil
}

// usedMemory fills the contexts of a model that was opened as "ridge run" does,
// and prints the most memory that this process has had. --check runs it in a
// process of its own.
func (f *planFlags) usedMemory(c *cobra.Command, path string, act model.Act) error {
	if f.use.Context < 1 {
		return errors.New("--fill: expected --ctx beside it")
	}
	kv, err := parseKV(f.kv)
	if err != nil {
		return err
	}
	s, err := roofline.Read(path, kv.DType())
	if err != nil {
		return err
	}
	m, err := ridge.OpenFile(path, ridge.Options{
		Workers: f.threads, Context: f.use.Context, KV: kv, Act: act, Chunk: f.use.Chunk, KVBytes: s.KVMemory(f.use.Context+64, f.use.Seqs),
	})
	if err != nil {
		return err
	}
	defer m.Close()
	var wg sync.WaitGroup
	errs := make([]error, f.use.Seqs)
	for i := range errs {
		wg.Go(func() { errs[i] = fillContext(c.Context(), m.Engine(), i) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return writeJSON(c.OutOrStdout(), machine.ReadProcess())
}

// fillContext computes a prompt of pseudo-random tokens that nearly fills the
// context, and the answer that fills it.
func fillContext(ctx context.Context, e *engine.Engine, seed int) error {
	const answer = 4
	n := max(1, e.Model().Context()-answer)
	r := engine.Request{Tokens: make([]int32, n), IgnoreEOS: true, MaxTokens: answer}
	vocab, x := uint32(e.Model().Config().Vocab), uint32(seed)*7919+1
	for i := range r.Tokens {
		x = x*1664525 + 1013904223
		r.Tokens[i] = int32(x >> 8 % vocab)
	}
	st, err := e.Submit(ctx, r)
	if err != nil {
		return err
	}
	defer st.Close()
	for {
		switch ev, ok := st.Next(ctx); {
		case !ok:
			return nil
		case ev.Err != nil:
			return ev.Err
		}
	}
}

// checkMemory has a process of its own fill the contexts, and adds the most
// memory that it had.
func (f *planFlags) checkMemory(c *cobra.Command, r *roofline.Report) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("--check: %w", err)
	}
	child := exec.CommandContext(c.Context(), self, "plan", r.File, "--fill", "--ctx", fmt.Sprint(r.Context), "--batch", fmt.Sprint(r.Seqs),
		"--threads", fmt.Sprint(r.Threads), "--kv", f.kv, "--act", f.act, "--chunk", fmt.Sprint(f.use.Chunk))
	child.Args[0] = "ridge" // whatever it was started as
	child.Stderr = os.Stderr
	out, err := child.Output()
	if err != nil {
		return fmt.Errorf("--check: memory: %w", err)
	}
	var p machine.Process
	if err := json.Unmarshal(out, &p); err != nil {
		return fmt.Errorf("--check: memory: %w", err)
	}
	r.Memory.Measured = p.Peak
	return nil
}
