package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"ridge/model"
)

func mergeCommand() *cobra.Command {
	var f hubFlags
	var loras []string
	var to, split string
	var asJSON, force bool
	var g model.Merge
	c := &cobra.Command{
		Use:   "merge MODEL --lora FILE[:SCALE] -o FILE.gguf|FOLDER/",
		Short: "Write a model with the changes of LoRA adapters in its weights",
		Long: `Write a model whose weights have the changes of LoRA adapters in them, as a GGUF
file or, with a name that ends in /, as a checkpoint folder. Adapters are folders
that PEFT has written, or GGUF files; several are summed.

Matrices stay what they are, or become --type. Rounding to half precision takes
away a little of the changes, and what that is is said. Quantized matrices would
lose much of them: those that change need a --type, which the others do not get,
or --requantize, which keeps their types.`,
		Example: `  ridge merge ./checkpoint --lora ./adapter -o merged.gguf
  ridge merge model-q8_0.gguf --lora adapter.gguf:0.5 --type f16 -o merged.gguf
  ridge merge ./checkpoint --lora ./adapter -o merged/`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) (err error) {
			if g.SplitBytes, err = splitBytes(split); err != nil {
				return err
			}
			if err := newName(to, force, g.SplitBytes > 0); err != nil {
				return fmt.Errorf("--output: %w", err)
			}
			for _, v := range loras {
				path, scale, err := scaledPath(v)
				if err != nil {
					return fmt.Errorf("--lora: %w", err)
				}
				g.Adapters, g.Scales = append(g.Adapters, path), append(g.Scales, scale)
			}
			bars := newProgress(os.Stderr)
			defer bars.close()
			paths, err := f.find(c, args, bars)
			if err != nil {
				return err
			}
			g.Type, g.Progress = strings.ToLower(g.Type), bars.load(filepath.Base(to))
			files, err := g.Write(paths[0], to)
			bars.close()
			if err != nil {
				return err
			}
			if lost := g.Lost; lost > 0 {
				fmt.Fprintf(c.ErrOrStderr(), "%d matrices changed; rounding moves them by at most %.2g of what the adapters change (of a matrix, root of the mean square)\n", g.Changed, lost)
			} else {
				fmt.Fprintf(c.ErrOrStderr(), "%d matrices changed; nothing was rounded\n", g.Changed)
			}
			return writeConverted(c.OutOrStdout(), files, asJSON)
		},
	}
	f.add(c)
	c.Flags().StringArrayVar(&loras, "lora", nil, loraHelp)
	c.Flags().StringVarP(&to, "output", "o", "", "name of the GGUF `file`, or of the folder with a / behind it")
	c.Flags().StringVar(&g.Type, "type", "keep", "type of matrices of floats, and of quantized ones that change: f32, f16, bf16, or keep")
	c.Flags().BoolVar(&g.Requantize, "requantize", false, "quantize changed matrices again, for the loss that is said then")
	c.Flags().StringVar(&split, "split-size", "", "most bytes of tensors in a file, such as 4G; several files are written then")
	c.Flags().BoolVar(&force, "force", false, "replace a file that is there")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	for _, name := range []string{"lora", "output"} {
		if err := c.MarkFlagRequired(name); err != nil {
			panic(err) // the flag is there
		}
	}
	return c
}

// newName refuses names for what is written that are none, or taken.
func newName(to string, force, split bool) error {
	folder := strings.HasSuffix(to, "/")
	if !folder && !strings.HasSuffix(to, ".gguf") {
		return fmt.Errorf("expected a name that ends in .gguf, or in / for a checkpoint folder, found %q", to)
	}
	if _, err := os.Stat(to); err == nil && folder {
		return fmt.Errorf("%s is there already", to)
	} else if err == nil && !force {
		return fmt.Errorf("%s is there already: --force replaces it", to)
	}
	if folder && split {
		return fmt.Errorf("--split-size: expected a name that ends in .gguf, found the folder %q", to)
	}
	return nil
}
