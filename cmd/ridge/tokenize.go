package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"ridge/hub"
	"ridge/model"
	"ridge/text/tokenizer"
)

func tokenizeCommand() *cobra.Command {
	var f hubFlags
	var asJSON, decode, plain, bare bool
	c := &cobra.Command{
		Use:   "tokenize MODEL [TEXT]",
		Short: "Show the tokens of a text, or the text of tokens",
		Example: `  ridge tokenize smollm2 "Hello, world"
  ridge tokenize smollm2 --decode "19556 28 905"`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(c *cobra.Command, args []string) error {
			text := ""
			if len(args) == 2 {
				text = args[1]
			} else {
				b, err := io.ReadAll(c.InOrStdin())
				if err != nil {
					return fmt.Errorf("standard input: %w", err)
				}
				text = string(b)
			}
			tok, err := openTokenizer(c, &f, args[0])
			if err != nil {
				return err
			}
			if decode {
				ids, err := parseIDs(text, tok.VocabSize())
				if err != nil {
					return err
				}
				_, err = fmt.Fprintln(c.OutOrStdout(), tok.Decode(ids))
				return err
			}
			ids := tok.Encode(nil, text, tokenizer.EncodeOptions{AddSpecial: !bare, ParseSpecial: !plain})
			return writeTokens(c.OutOrStdout(), tok, ids, asJSON)
		},
	}
	f.add(c)
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.Flags().BoolVarP(&decode, "decode", "d", false, "TEXT is token ids; print their text")
	c.Flags().BoolVar(&plain, "plain", false, "treat the text of special tokens as text")
	c.Flags().BoolVar(&bare, "bare", false, "do not add the vocabulary's start and end tokens")
	return c
}

// openTokenizer reads only the vocabulary of a model.
func openTokenizer(c *cobra.Command, f *hubFlags, name string) (*tokenizer.Tokenizer, error) {
	bars := newProgress(os.Stderr)
	defer bars.close()
	o, err := f.options(bars)
	if err != nil {
		return nil, err
	}
	m, err := hub.Resolve(c.Context(), name, o)
	if err != nil {
		return nil, err
	}
	tok, err := model.OpenTokenizer(m.Path())
	if err == nil && tok == nil {
		err = fmt.Errorf("%s: tokenizer: expected one in the file or beside it, found none", m.Path())
	}
	return tok, err
}

type tokenItem struct {
	ID    int32  `json:"id"`
	Piece string `json:"piece"`
}

func writeTokens(w io.Writer, tok *tokenizer.Tokenizer, ids []int32, asJSON bool) error {
	items := make([]tokenItem, len(ids))
	for i, id := range ids {
		items[i] = tokenItem{id, string(tok.Piece(id))}
	}
	if asJSON {
		return writeJSON(w, items)
	}
	for _, it := range items {
		if _, err := fmt.Fprintf(w, "%7d  %q\n", it.ID, it.Piece); err != nil {
			return err
		}
	}
	return nil
}

func parseIDs(text string, vocab int) ([]int32, error) {
	var ids []int32
	for _, s := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" ,[]\t\r\n", r) }) {
		n, err := strconv.ParseInt(s, 10, 32)
		if err != nil || n < 0 || int(n) >= vocab {
			return nil, fmt.Errorf("token ids: expected numbers from 0 to %d, found %q", vocab-1, s)
		}
		ids = append(ids, int32(n))
	}
	if len(ids) == 0 {
		return nil, errors.New("token ids: expected at least one, found none")
	}
	return ids, nil
}

// textTokens returns the tokens of a text with those around it that the vocabulary
// asks for, the first ones if most is not 0.
func textTokens(tok *tokenizer.Tokenizer, text []byte, most int) []int32 {
	ids := tok.Encode(nil, string(text), tokenizer.EncodeOptions{AddSpecial: true})
	if most > 0 {
		ids = ids[:min(most, len(ids))]
	}
	return ids
}
