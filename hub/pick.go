package hub

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

var (
	shardName = regexp.MustCompile(`^(.*)-(\d{5})-of-(\d{5})(\.gguf)$`)
	quantName = regexp.MustCompile(`(?i)(?:^|[-._ /])((?:UD-)?(?:IQ[1-4]_(?:XXS|XS|S|M|NL)|Q[2-8]_K(?:_(?:XXL|XL|L|M|S))?|Q[1-8]_[01](?:_(?:4_4|4_8|8_8|XL|L))?|TQ[12]_0|MXFP4(?:_MOE)?|NVFP4|BF16|FP?16|FP?32))(?:[-._ /]|$)`)
)

// The order in which a quantization is chosen when none is asked for: small
// enough for a CPU, close enough to the original.
var defaultQuants = []string{"Q4_K_M", "Q4_K_S", "Q4_0", "Q4_1", "IQ4_NL", "IQ4_XS", "Q5_K_M", "Q5_K_S", "Q6_K", "Q8_0", "Q3_K_M", "F16", "BF16", "F32"}

const maxShards = 1000

// quantOf reads the quantization from a file name; "" if it does not say.
func quantOf(name string) string {
	all := quantName.FindAllStringSubmatch(path.Base(name), -1)
	if len(all) == 0 {
		all = quantName.FindAllStringSubmatch(name, -1)
	}
	if len(all) == 0 {
		return ""
	}
	q := strings.ToUpper(all[len(all)-1][1])
	if rest, ok := strings.CutPrefix(q, "FP"); ok {
		return "F" + rest
	}
	return q
}

// isModelGGUF leaves out the GGUF files that are not language models by
// themselves.
func isModelGGUF(name string) bool {
	base := strings.ToLower(path.Base(name))
	return strings.HasSuffix(base, ".gguf") && !strings.Contains(base, "mmproj") && !strings.Contains(base, "imatrix")
}

// shardsOf lists the names of all shards of the split file that name belongs
// to, or just name.
func shardsOf(name string) ([]string, error) {
	m := shardName.FindStringSubmatch(name)
	if m == nil {
		return []string{name}, nil
	}
	n, _ := strconv.Atoi(m[3])
	if n < 1 || n > maxShards {
		return nil, fmt.Errorf("%s: split count: expected 1 to %d, found %d", name, maxShards, n)
	}
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("%s-%05d-of-%s%s", m[1], i+1, m[3], m[4])
	}
	return out, nil
}

// pickGGUF chooses the GGUF files that sel (a file, a quant, or "" for a good
// default) means among names. It returns the shards in order, or nil if there
// is no GGUF model at all.
func pickGGUF(names []string, sel string) ([]string, error) {
	var models []string // one name per model: the first shard of a split one
	have := map[string]bool{}
	for _, n := range names {
		have[n] = true
		if m := shardName.FindStringSubmatch(n); m != nil && m[2] != "00001" {
			continue
		}
		if isModelGGUF(n) {
			models = append(models, n)
		}
	}
	// Shorter names first: "model-Q4_K_M.gguf" before "model-draft-Q4_K_M.gguf".
	slices.SortFunc(models, func(a, b string) int {
		if d := len(a) - len(b); d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
	chosen := ""
	switch {
	case isFileSel(sel):
		i := slices.IndexFunc(names, func(n string) bool { return n == sel })
		if i < 0 {
			i = slices.IndexFunc(names, func(n string) bool { return strings.EqualFold(path.Base(n), sel) })
		}
		if i >= 0 {
			chosen = names[i]
		}
	case sel != "":
		chosen = pickQuant(models, sel)
	case len(models) > 0:
		for _, q := range defaultQuants {
			if chosen = pickQuant(models, q); chosen != "" {
				break
			}
		}
		if chosen == "" {
			chosen = models[0]
		}
	default:
		return nil, nil
	}
	if chosen == "" {
		return nil, fmt.Errorf("no file matches %q: found %s", sel, brief(models))
	}
	shards, err := shardsOf(chosen)
	if err != nil {
		return nil, err
	}
	for _, s := range shards {
		if !have[s] {
			return nil, fmt.Errorf("split file is incomplete: %s is missing", s)
		}
	}
	return shards, nil
}

func pickQuant(models []string, quant string) string {
	for _, n := range models {
		if strings.EqualFold(quantOf(n), quant) {
			return n
		}
	}
	// A tag that is not a plain quant name, or lacks what comes before it ("Q2_K_XL"
	// of "UD-Q2_K_XL", "latest-f16"): the file name must end with it as a whole word.
	for _, n := range models {
		base := path.Base(n)
		if m := shardName.FindStringSubmatch(base); m != nil {
			base = m[1] + m[4]
		}
		stem := strings.ToLower(strings.TrimSuffix(base, path.Ext(base)))
		if q := strings.ToLower(quant); stem == q || strings.HasSuffix(stem, "-"+q) || strings.HasSuffix(stem, "."+q) {
			return n
		}
	}
	return ""
}

// sentencePart are the files of what sentence-transformers has behind a model, such
// as 1_Pooling/config.json.
var sentencePart = regexp.MustCompile(`^\d{1,2}_[A-Za-z]{1,32}/(config\.json|model\.safetensors)$`)

// isSafetensorsPart tells whether a file of a repository is needed to run a
// safetensors model: configuration, tokenizer, template, weights.
func isSafetensorsPart(name string) bool {
	if strings.ContainsRune(name, '/') {
		return sentencePart.MatchString(name)
	}
	switch name {
	case "modules.json", "config_sentence_transformers.json", "sentence_bert_config.json":
		return true
	case "config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json", "tokenizer.model",
		"special_tokens_map.json", "added_tokens.json", "vocab.json", "vocab.txt", "merges.txt",
		"chat_template.jinja", "chat_template.json", "model.safetensors.index.json", "adapter_config.json", "LICENSE", "LICENSE.txt":
		return true
	}
	return strings.HasSuffix(name, ".safetensors") && !strings.HasPrefix(name, "consolidated")
}

// pickSafetensors returns the files of a safetensors model among names, nil if
// there is none.
func pickSafetensors(names []string) []string {
	var out []string
	weights, config := false, false
	for _, n := range names {
		if isSafetensorsPart(n) {
			out = append(out, n)
			weights = weights || strings.HasSuffix(n, ".safetensors") && !strings.ContainsRune(n, '/')
			config = config || n == "config.json"
		}
	}
	if !weights || !config {
		return nil
	}
	slices.Sort(out)
	return out
}

// brief lists names for an error message, not all of them.
func brief(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	const most = 12
	if len(names) > most {
		return strings.Join(names[:most], ", ") + fmt.Sprintf(" and %d more", len(names)-most)
	}
	return strings.Join(names, ", ")
}
