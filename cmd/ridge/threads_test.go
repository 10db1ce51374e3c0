package main

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"ridge/internal/pool"
	"ridge/measure/machine"
)

func TestThreadFlags(t *testing.T) {
	for _, c := range []struct {
		env, args string
		want      threadFlags
		err       string
	}{
		{"", "", threadFlags{}, ""},
		{"1", "", threadFlags{pin: true}, ""},
		{"true", "--pin=false -t 3", threadFlags{threads: 3}, ""},
		{"0", "--pin --threads 2 --threads-batch 4", threadFlags{threads: 2, batch: 4, pin: true}, ""},
		{"yes", "", threadFlags{}, `RIDGE_PIN: expected 0 or 1, found "yes"`},
		{"", "-t -1", threadFlags{threads: -1}, "--threads and --threads-batch: expected 0 to 256"},
		{"", "--threads-batch 257", threadFlags{batch: 257}, "expected 0 to 256, found 0 and 257"},
	} {
		t.Setenv("RIDGE_PIN", c.env)
		var f threadFlags
		fs := pflag.NewFlagSet("", pflag.ContinueOnError)
		f.add(fs)
		if err := fs.Parse(strings.Fields(c.args)); err != nil {
			t.Fatal(err)
		}
		err := f.check()
		if c.err == "" && err != nil || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
			t.Errorf("RIDGE_PIN=%s %s: error %v, want %q", c.env, c.args, err, c.err)
		}
		if f.threads != c.want.threads || f.batch != c.want.batch || f.pin != c.want.pin {
			t.Errorf("RIDGE_PIN=%s %s: %+v, want %+v", c.env, c.args, f, c.want)
		}
	}
}

// What doctor measured is what bench runs with, unless --threads is given.
func TestMeasuredThreadsAreUsed(t *testing.T) {
	if runtime.GOOS == "windows" || pool.DefaultWorkers() < 2 {
		t.Skip("needs two cores and a folder for caches that can be moved")
	}
	t.Setenv("HOME", t.TempDir())
	t.Setenv("XDG_CACHE_HOME", filepath.Join(t.TempDir(), "cache"))
	kept := machine.Threads{Counts: pool.Counts{Decode: 1, Batch: 2}, Taken: time.Now()}
	if err := kept.Save(machine.ThreadsPath()); err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string][]string{
		"":                        {`"n_threads":1,`, `"n_threads":2,`},
		"-t 2":                    {`"n_threads":2,`, `"n_threads":2,`},
		"-t 1 --threads-batch 3":  {`"n_threads":1,`, `"n_threads":3,`},
		"--threads-batch 1 --pin": {`"n_threads":1,`, `"n_threads":1,`},
		"-t 2 --threads-batch 1":  {`"n_threads":2,`, `"n_threads":1,`},
	} {
		out, err := runCobra(t, benchCommand(), append([]string{tinyLlama, "-p", "16", "-n", "2", "-r", "1", "--probe", "0", "-o", "json"}, strings.Fields(args)...)...)
		if err != nil {
			t.Errorf("%s: %v", args, err)
			continue
		}
		out = strings.ReplaceAll(out, ": ", ":")
		at := strings.Index(out, `"n_gen":0`) // the prompt comes first
		tg := strings.Index(out, `"n_gen":2`)
		if at < 0 || tg < at || !strings.Contains(out[:at], want[1]) || !strings.Contains(out[at:], want[0]) || !strings.Contains(out, `"gc_pause_max_ms"`) {
			t.Errorf("%q: want %s for generating and %s for prompts in\n%s", args, want[0], want[1], out)
		}
	}
	if _, err := os.Stat(machine.ThreadsPath()); err != nil {
		t.Error(err)
	}
}
