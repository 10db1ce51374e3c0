package model

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// peftConfig is what adapter_config.json says that matters here.
type peftConfig struct {
	file   string
	rank   int
	alpha  float64
	dora   bool // rows have lengths of their own
	root   bool // scales by the root of the rank (Kalajdzievski 2023, arXiv 2312.03732)
	ranks  []rankPattern
	alphas []rankPattern
}

// rankPattern is a number of the modules whose names match.
type rankPattern struct {
	match *regexp.Regexp
	value float64
}

// peftIgnored are keys that change nothing of what a finished adapter computes.
var peftIgnored = []string{
	"task_type", "peft_version", "base_model_name_or_path", "revision", "inference_mode", "target_modules", "exclude_modules", "lora_dropout",
	"fan_in_fan_out", "layers_to_transform", "layers_pattern", "megatron_core", "runtime_config", "qalora_group_size", "ensure_weight_tying", "auto_mapping",
}

// peftInits are ways to begin that leave the base model as it was. After others, such
// as PiSSA and LoftQ, the adapter belongs to a base model that is nowhere to be found.
var peftInits = []any{nil, true, false, "gaussian", "eva", "orthogonal", "mica"}

// readPEFT reads the configuration of an adapter, and says where its weights are.
func readPEFT(path string) (c *peftConfig, weights string, err error) {
	dir, weights := path, filepath.Join(path, "adapter_model.safetensors")
	if strings.HasSuffix(path, ".safetensors") {
		dir, weights = filepath.Dir(path), path
	}
	c = &peftConfig{file: filepath.Join(dir, "adapter_config.json")}
	info, err := os.Stat(c.file)
	if err != nil {
		return nil, "", fmt.Errorf("model: adapter %s: expected a GGUF file, or a folder with adapter_config.json and adapter_model.safetensors: %w", path, err)
	}
	if info.Size() > maxPEFT {
		return nil, "", fmt.Errorf("model: adapter %s: expected at most %d bytes, found %d", c.file, maxPEFT, info.Size())
	}
	b, err := os.ReadFile(c.file)
	if err != nil {
		return nil, "", fmt.Errorf("model: adapter: %w", err)
	}
	var keys map[string]any
	if err := json.Unmarshal(strictJSON(b), &keys); err != nil {
		return nil, "", fmt.Errorf("model: adapter %s: %w", c.file, err)
	}
	if err := c.read(keys); err != nil {
		return nil, "", err
	}
	if _, err := os.Stat(weights); err != nil {
		return nil, "", fmt.Errorf("model: adapter %s: expected weights as safetensors: %w", path, err)
	}
	return c, weights, nil
}

// maxPEFT bounds the size of adapter_config.json.
const maxPEFT = 4 << 20

func (c *peftConfig) fault(key string, want, got any) error {
	return fmt.Errorf("model: adapter %s: %s: expected %v, found %v", c.file, key, want, got)
}

// read takes what matters, and refuses what is not known and says something.
func (c *peftConfig) read(keys map[string]any) error {
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		v := keys[key]
		var err error
		switch key {
		case "peft_type":
			if v != "LORA" {
				return c.fault(key, `"LORA"`, v)
			}
		case "r":
			r, ok := v.(float64)
			if !ok || r < 1 || r > 1<<20 || r != math.Trunc(r) {
				return c.fault(key, "a rank of 1 or more", v)
			}
			c.rank = int(r)
		case "lora_alpha":
			alpha, ok := v.(float64)
			if !ok {
				return c.fault(key, "a number", v)
			}
			c.alpha = alpha
		case "use_rslora":
			c.root = v == true
		case "use_dora":
			c.dora = v == true
		case "bias":
			if v != "none" && v != nil {
				return c.fault(key, `"none"`, v)
			}
		case "init_lora_weights":
			if !slices.Contains(peftInits, plainValue(v)) {
				return c.fault(key, fmt.Sprint("one of ", peftInits, ", which leave the base model as it is"), v)
			}
		case "rank_pattern":
			c.ranks, err = c.patterns(key, v)
		case "alpha_pattern":
			c.alphas, err = c.patterns(key, v)
		default:
			if !slices.Contains(peftIgnored, key) && says(v) {
				return c.fault(key, "no value: what it asks for is not computed here", v)
			}
		}
		if err != nil {
			return err
		}
	}
	if keys["peft_type"] == nil {
		return c.fault("peft_type", `"LORA"`, "none")
	}
	if c.rank == 0 || keys["lora_alpha"] == nil {
		return c.fault("r, lora_alpha", "two numbers", fmt.Sprint(keys["r"], ", ", keys["lora_alpha"]))
	}
	return nil
}

// plainValue returns v if it can be compared with others, and its text otherwise.
func plainValue(v any) any {
	switch v.(type) {
	case nil, bool, string, float64:
		return v
	}
	return fmt.Sprint(v)
}

// says reports whether a value asks for something: it is not null, false or empty.
func says(v any) bool {
	switch v := v.(type) {
	case nil:
		return false
	case bool:
		return v
	case string:
		return v != ""
	case []any:
		return len(v) > 0
	case map[string]any:
		return len(v) > 0
	}
	return true
}

// patterns reads numbers of modules, which are told by the ends of their names.
func (c *peftConfig) patterns(key string, v any) (out []rankPattern, err error) {
	all, ok := v.(map[string]any)
	if !ok && v != nil {
		return nil, c.fault(key, "an object", v)
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		n, ok := all[name].(float64)
		match, err := regexp.Compile(`^(?:.*\.)?(?:` + name + `)$`)
		if err != nil || !ok || key == "rank_pattern" && n < 1 {
			return nil, c.fault(key+": "+name, "the name of modules and a number", all[name])
		}
		out = append(out, rankPattern{match, n})
	}
	return out, nil
}

// settle sets the scale of a target's matrices.
func (c *peftConfig) settle(f *adapterFile, target string, p *lowRank) error {
	module := strings.TrimSuffix(target, ".weight")
	rank, more := pick(c.ranks, module, float64(c.rank))
	alpha, moreAlpha := pick(c.alphas, module, c.alpha)
	if more || moreAlpha {
		return c.fault("rank_pattern, alpha_pattern", "one number for "+module, "several")
	}
	if float64(p.down.Rows) != rank {
		return f.fault("tensor %q: expected %v rows, the rank in adapter_config.json, found %d", p.downName, rank, p.down.Rows)
	}
	if err := c.checkSizes(p, target); err != nil {
		return f.fault("%w", err)
	}
	if p.scale = float32(alpha / rank); c.root {
		p.scale = float32(alpha / math.Sqrt(rank))
	}
	return nil
}

// pick returns the number of a module, and whether there are several.
func pick(all []rankPattern, module string, value float64) (n float64, several bool) {
	n, found := value, false
	for _, x := range all {
		if x.match.MatchString(module) {
			several = several || found && x.value != n
			n, found = x.value, true
		}
	}
	return n, several
}
