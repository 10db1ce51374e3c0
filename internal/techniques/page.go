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
internal/techniques/table.go, whose test checks that what is named here exists;
test.sh fails if a test that is named here fails, does not run or, when CI=true,
is skipped. What the atlas of techniques asks for and ridge lacks is missing; the
output of the command shows what is there.

| technique | what it is | used by | code | test | command | benchmark | missing |
|---|---|---|---|---|---|---|---|
`)
	for i := range All {
		x := &All[i]
		fmt.Fprintf(&b, "| %s | %s | `%s` | [%s](../%s) | %s | `%s` | %s | %s |\n", x.ID, x.What, x.Use, x.Code, x.Code, x.Test, x.Command(), x.Bench, x.Missing)
	}
	return b.Bytes()
}
