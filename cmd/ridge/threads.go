package main

import (
	"context"
	"fmt"
	"os"
	"strconv"

	"github.com/spf13/pflag"

	"ridge/internal/pool"
	"ridge/measure/machine"
)

// threadFlags say how many threads compute, and where.
type threadFlags struct {
	threads, batch int
	pin            bool
	pinErr         error // of the environment
}

// addBatch adds the flags but --threads, which is a list for some commands.
func (f *threadFlags) addBatch(fs *pflag.FlagSet) {
	if text := os.Getenv("RIDGE_PIN"); text != "" {
		var err error
		if f.pin, err = strconv.ParseBool(text); err != nil {
			f.pinErr = fmt.Errorf("RIDGE_PIN: expected 0 or 1, found %q", text)
		}
	}
	fs.IntVar(&f.batch, "threads-batch", 0, "threads for prompts and for steps of more than 8 rows (default: as many as --threads, if that is given, else what was measured)")
	fs.BoolVar(&f.pin, "pin", f.pin, "bind each thread to a core of its own; helps where the system moves threads about, and only while nothing else uses these cores (also RIDGE_PIN=1)")
}

func (f *threadFlags) add(fs *pflag.FlagSet) {
	fs.IntVarP(&f.threads, "threads", "t", 0, "threads that compute (default: what ridge doctor, or the first start in less than 300 ms on a quiet machine, measured to be best, else one per core given to the process; RIDGE_TUNE=off: do not measure)")
	f.addBatch(fs)
}

func (f *threadFlags) check() error {
	if f.threads < 0 || f.threads > pool.MaxWorkers || f.batch < 0 || f.batch > pool.MaxWorkers {
		return fmt.Errorf("--threads and --threads-batch: expected 0 to %d, found %d and %d", pool.MaxWorkers, f.threads, f.batch)
	}
	return f.pinErr
}

// measured returns the numbers of threads that are best here, if they are known
// or can be found out at once; zeros where they are not wanted.
func (f *threadFlags) measured(ctx context.Context) pool.Counts {
	if f.threads > 0 {
		return pool.Counts{}
	}
	return machine.AtStart(ctx)
}
