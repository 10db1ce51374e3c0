package techniques

import (
	"bytes"
	"fmt"
)

// Page returns docs/techniques.md.
func Page() []byte {
	var b bytes.Buffer
	b.WriteString(`# Techniques

What ridge has of the field's techniques, by their names in the surveys. The
same list is printed by ` + "`ridge techniques`" + `. This page is generated from
internal/techniques/table.go, whose test checks that what is named here exists.

| technique | what it is | used by | code | test | benchmark |
|---|---|---|---|---|---|
`)
	for _, x := range All {
		fmt.Fprintf(&b, "| %s | %s | `%s` | [%s](../%s) | %s | %s |\n", x.ID, x.What, x.Use, x.Code, x.Code, x.Test, x.Bench)
	}
	return b.Bytes()
}
