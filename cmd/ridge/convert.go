package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"ridge/model"
)

func convertCommand() *cobra.Command {
	var f hubFlags
	var typ, split string
	var asJSON, force bool
	c := &cobra.Command{
		Use:   "convert MODEL FILE.gguf|FOLDER/",
		Short: "Write a checkpoint as a GGUF file, or a GGUF file anew or as a checkpoint",
		Long: `Write a model as a GGUF file that llama.cpp and other programs read: a folder with
config.json and safetensors files, with its tokenizer and chat template, or a GGUF
file, to split it, to join its parts or to change the type of its floats. Quantized
tensors of a GGUF file are kept as they are.

With a name that ends in / a GGUF file becomes a checkpoint folder, which Hugging
Face transformers reads: config.json, model.safetensors, tokenizer.json, and the
chat template. Quantized tensors need a --type then.

What is written is read again before it appears: what the other kind has no way to
say, and what is not written, is an error that names it.`,
		Example: `  ridge convert ./checkpoint model.gguf
  ridge convert hf:org/repo model.gguf --type bf16
  ridge convert model.gguf parts.gguf --split-size 4G
  ridge convert model.gguf checkpoint/ --type bf16`,
		Args: cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			most, err := splitBytes(split)
			if err != nil {
				return err
			}
			to := args[1]
			if err := newName(to, force, most > 0); err != nil {
				return err
			}
			bars := newProgress(os.Stderr)
			defer bars.close()
			paths, err := f.find(c, args[:1], bars)
			if err != nil {
				return err
			}
			files, err := model.Convert(paths[0], to, strings.ToLower(typ), most, bars.load(filepath.Base(to)))
			bars.close()
			if err != nil {
				return err
			}
			return writeConverted(c.OutOrStdout(), files, asJSON)
		},
	}
	f.add(c)
	c.Flags().StringVar(&typ, "type", "keep", "type of matrices of floats: f32, f16, bf16, or keep")
	c.Flags().StringVar(&split, "split-size", "", "most bytes of tensors in a file, such as 4G; several files are written then")
	c.Flags().BoolVar(&force, "force", false, "replace a file that is there")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// writeConverted says what was written.
func writeConverted(w io.Writer, files []string, asJSON bool) error {
	var list []map[string]any
	for _, f := range files {
		st, err := os.Stat(f)
		if err != nil {
			return err
		}
		if list = append(list, map[string]any{"file": f, "bytes": st.Size()}); !asJSON {
			fmt.Fprintf(w, "%s\t%s\n", f, bytesText(st.Size()))
		}
	}
	if asJSON {
		return writeJSON(w, list)
	}
	return nil
}

// splitBytes reads --split-size.
func splitBytes(size string) (uint64, error) {
	if size == "" {
		return 0, nil
	}
	n, err := parseSize(size)
	if err != nil || n < 1 {
		return 0, fmt.Errorf("--split-size: expected a number of bytes such as 4G, found %q", size)
	}
	return uint64(n), nil
}
