package main

import (
	"fmt"
	"os"
	"path/filepath"

	"ridge/engine"
	"ridge/internal/scratch"
)

// swap returns the room for preempted sequences that the flags ask for, nil for
// none, and a function that ends it.
func (o *serveOptions) swap() (*engine.SwapSpace, func() error, error) {
	nothing := func() error { return nil }
	var sizes [2]int64
	for i, f := range []struct{ name, value string }{{"swap-ram", o.swapRAM}, {"swap-disk", o.swapDisk}} {
		if f.value == "" {
			continue
		}
		n, err := parseSize(f.value)
		if err != nil {
			return nil, nil, fmt.Errorf("--%s: %w", f.name, err)
		}
		sizes[i] = n
	}
	ram, disk := sizes[0], sizes[1]
	if ram == 0 && disk == 0 {
		return nil, nothing, nil
	}
	if disk == 0 {
		return engine.NewSwapSpace(ram, 0, ""), nothing, nil
	}
	base := filepath.Join(o.data, "swap")
	if o.data == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return nil, nil, fmt.Errorf("--swap-disk: %w; say --data", err)
		}
		base = filepath.Join(cache, "ridge", "swap")
	}
	f, err := scratch.Open(base)
	if err != nil {
		return nil, nil, fmt.Errorf("--swap-disk: %w", err)
	}
	return engine.NewSwapSpace(ram, disk, f.Path()), f.Close, nil
}
