package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"ridge/engine"
	"ridge/internal/cpu"
	"ridge/model"
)

// prefixFlags say which prefixes are kept, and where.
type prefixFlags struct {
	pinPart, store string

	share  float64 // of the pages, if bytes is 0
	bytes  int64
	folder *engine.PrefixDisk // nil for none
}

func (f *prefixFlags) add(fs *pflag.FlagSet) {
	fs.StringVar(&f.pinPart, "pin-prefix", "50%", "memory for beginnings of prompts that requests mark (cache_control) or that come again, which the prefix cache lets go last: bytes, or a part of --kv-memory; 0 for none")
	fs.StringVar(&f.store, "prefix-disk", "", "bytes on disk, and =FOLDER, for the same beginnings, which are there after a restart and need not be computed again: in --data, or the user's cache folder (default: none)")
}

// openPrefixes reads the flags and opens the folder.
func (f *prefixFlags) openPrefixes(data string, warn func(string)) error {
	text, percent := strings.CutSuffix(f.pinPart, "%")
	if n, err := strconv.ParseFloat(text, 64); percent || err == nil && n == 0 || text == "" {
		if text != "" && err != nil || !(n >= 0 && n <= 100) {
			return fmt.Errorf("--pin-prefix: expected bytes or 0%% to 100%%, found %q", f.pinPart)
		}
		f.share = n / 100
	} else if f.bytes, err = parseSize(f.pinPart); err != nil {
		return fmt.Errorf("--pin-prefix: %w", err)
	}
	if f.store == "" {
		return nil
	}
	size, dir, named := strings.Cut(f.store, "=")
	most, err := parseSize(size)
	if err != nil {
		return fmt.Errorf("--prefix-disk: %w", err)
	}
	if dir == "" {
		if named {
			return errors.New("--prefix-disk: expected a folder behind =, found nothing")
		}
		dir = filepath.Join(data, "prefixes")
		if data == "" {
			cache, err := os.UserCacheDir()
			if err != nil {
				return fmt.Errorf("--prefix-disk: %w; say --data, or BYTES=FOLDER", err)
			}
			dir = filepath.Join(cache, "ridge", "prefixes")
		}
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("--prefix-disk: %w", err)
	}
	f.folder = &engine.PrefixDisk{Bytes: most, Dir: dir, Warn: func(file string, why error) {
		warn(fmt.Sprintf("%s: a prefix that cannot be used was removed and is computed again: %v", file, why))
	}}
	return nil
}

// open opens a model, and says which of its prefixes are kept.
func (f *prefixFlags) open(path string, mo model.Options, eo *engine.Options) (*model.Model, error) {
	m, err := model.Open(path, mo)
	if err != nil {
		return nil, err
	}
	eo.PinShare = f.share
	if f.bytes > 0 {
		eo.PinShare = min(1, float64(f.bytes)/float64(max(1, int64(m.Pool().Sure())*m.Pool().PageBytes())))
	}
	if f.folder != nil {
		// What is computed depends on all of these.
		identity := strings.Join([]string{m.Fingerprint(), m.Pool().DType().String(), cpu.Current().String(), version()}, " ")
		if eo.Prefixes, err = f.folder.Store(identity); err != nil {
			return nil, errors.Join(err, m.Close())
		}
	}
	return m, nil
}
