// Bundle makes the files of the page that the server embeds from their sources:
// one script and one style sheet, without white space. The same sources give the
// same bytes.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/evanw/esbuild/pkg/api"
)

func main() {
	if err := bundle("..", filepath.Join("..", "dist")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// bundle writes the files of the page whose folder is root to dist.
func bundle(root, dist string) error {
	root, err := filepath.Abs(root)
	if err != nil {
		return err
	}
	dist, err = filepath.Abs(dist)
	if err != nil {
		return err
	}
	r := api.Build(api.BuildOptions{
		AbsWorkingDir: root,
		EntryPoints:   []string{"web/app.js", "web/app.css"},
		Outdir:        dist,
		Bundle:        true,
		Write:         true,
		Format:        api.FormatESModule,
		Target:        api.ES2022,
		Charset:       api.CharsetUTF8,
		LegalComments: api.LegalCommentsEndOfFile,

		MinifyWhitespace: true, MinifySyntax: true, MinifyIdentifiers: true,
	})
	for _, m := range append(r.Errors, r.Warnings...) {
		at := ""
		if m.Location != nil {
			at = fmt.Sprintf("%s:%d: ", m.Location.File, m.Location.Line)
		}
		return fmt.Errorf("bundle: %s%s", at, m.Text)
	}
	return nil
}
