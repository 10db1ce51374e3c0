package load

import (
	"fmt"
	"io"
)

// HTML writes a page.
func HTML(w io.Writer, reports []*Report, version string) error {
	_, err := fmt.Fprintln(w, version)
	return err
}
