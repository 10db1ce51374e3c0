package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"ridge/internal/packfile"
	"ridge/model"
)

// packFlag says whether packed weights are kept for later starts.
type packFlag struct {
	packCache bool
	packErr   error  // of the environment
	room      string // --memory
}

func (f *packFlag) add(fs *pflag.FlagSet) {
	if text := os.Getenv("RIDGE_PACK_CACHE"); text != "" {
		var err error
		if f.packCache, err = strconv.ParseBool(text); err != nil {
			f.packErr = fmt.Errorf("RIDGE_PACK_CACHE: expected 0 or 1, found %q", text)
		}
	}
	fs.BoolVar(&f.packCache, "pack-cache", f.packCache, "keep the weights as the kernels read them in a file about as large as the model, which later starts map instead of packing again, and from which a model runs that does not fit into memory (also RIDGE_PACK_CACHE=1)")
	fs.StringVar(&f.room, "memory", "", "memory that a model may take, such as 4G (default: what the machine has free and its control groups leave)")
}

// memory returns what --memory says, 0 if it was not given.
func (f *packFlag) memory() (int64, error) {
	if f.room == "" {
		return 0, nil
	}
	n, err := parseSize(f.room)
	if err != nil {
		err = fmt.Errorf("--memory: %w", err)
	}
	return n, err
}

// hintMemory says what helps a model that does not fit into memory.
func hintMemory(err error) error {
	var e *model.MemoryError
	switch {
	case !errors.As(err, &e):
		return err
	case e.Context > 0:
		return fmt.Errorf("%w: see --ctx and --kv", err)
	}
	return fmt.Errorf("%w: with --pack-cache it runs from a file of about that size, slowly; a model with fewer bits for each weight may fit", err)
}

// beyondText says how a model runs that does not fit into memory.
func beyondText(b *model.Beyond) string {
	kept := bytesText(b.Pinned) + " of them are in memory"
	if b.Kept > 0 {
		kept = fmt.Sprintf("%s of them are in memory, and %s of experts, those that are chosen most", bytesText(b.Pinned), bytesText(b.Kept))
	}
	return fmt.Sprintf("the weights (%s) do not fit into the %s that %s: %s; each token reads %s of %s, at %.2g GB/s: expect about %.2g tokens a second",
		bytesText(b.Why.Weights), bytesText(b.Why.Left), strings.TrimPrefix(b.Why.Of, "what "), kept, bytesText(b.Read), b.File, b.Rate/1e9, b.TokensPerSecond())
}

// cache returns where packed weights are kept.
func (f *packFlag) cache(warn func(string)) model.PackCache {
	if !f.packCache {
		return model.PackCache{}
	}
	var o model.Options
	o.KeepPacked(warn)
	return o.PackCache
}

// packedInfo is what doctor tells of the files with packed weights.
type packedInfo struct {
	Dir   string            `json:"dir"`
	Files []packfile.Listed `json:"files"`
	Bytes int64             `json:"bytes"`
}

// listPacked returns the files with packed weights; if check is set their whole
// content is compared with its checksums.
func listPacked(check bool) packedInfo {
	in := packedInfo{Dir: packfile.Dir()}
	if in.Dir == "" {
		return in
	}
	in.Files = packfile.List(in.Dir)
	for i := range in.Files {
		f := &in.Files[i]
		in.Bytes += f.Size
		if check && f.Error == "" {
			if err := packfile.Verify(f.Path); err != nil {
				f.Error = err.Error()
			}
		}
	}
	return in
}

// advice says what is wrong with the files.
func (in *packedInfo) advice() []string {
	var out []string
	for _, f := range in.Files {
		if f.Error != "" {
			out = append(out, fmt.Sprintf("packed weights: %s: delete it, it is written again: %s", f.Path, f.Error))
		} else if _, err := os.Stat(f.Model); os.IsNotExist(err) {
			out = append(out, fmt.Sprintf("packed weights: %s: its model %s is gone: it is deleted when the next one is written", f.Path, f.Model))
		}
	}
	return out
}
