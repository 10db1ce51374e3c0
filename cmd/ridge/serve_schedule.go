package main

import (
	"fmt"

	"ridge/sched"
)

// schedule says how the steps of one engine are filled: what is in it cannot be
// shared.
func (o *serveOptions) schedule() (sched.Config, error) {
	cfg, err := sched.Preset(o.preset)
	if err != nil {
		return cfg, fmt.Errorf("--preset: %w", err)
	}
	cfg.MaxQueue, cfg.ITLTarget, cfg.Shed = o.maxQueue, o.itl, o.shed
	if o.maxSeqs > 0 {
		cfg.MaxSeqs = o.maxSeqs
	}
	if o.stepTokens > 0 {
		cfg.MaxTokens = o.stepTokens
	}
	if o.chunk > 0 {
		if cfg.Chunk = o.chunk; !cfg.Split {
			return cfg, fmt.Errorf("--chunk: the preset %s does not split prompts", o.preset)
		}
	}
	if o.classSlowdown != 0 {
		if cfg.ClassSlowdown = max(o.classSlowdown, 0); cfg.ClassSlowdown > 0 && (cfg.ClassSlowdown < 1 || cfg.ClassSlowdown > 100 || !cfg.Split) {
			return cfg, fmt.Errorf("--class-slowdown: expected 1 to 100 with a preset that splits prompts, or less than 0 for any, found %g and %s", o.classSlowdown, o.preset)
		}
	}
	if o.policy != "" {
		if err := cfg.UsePolicy(o.policy); err != nil {
			return cfg, fmt.Errorf("--policy: %w", err)
		}
	}
	if (o.swapRAM != "" || o.swapDisk != "") && cfg.Recovery == sched.Recompute {
		cfg.Recovery = sched.Cheaper
	}
	return cfg, nil
}
