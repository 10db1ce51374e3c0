package techniques

import (
	"bytes"
	"fmt"
	"strings"
)

// Page returns docs/techniques.md.
func Page() []byte {
	var b bytes.Buffer
	b.WriteString(`# Techniques

What ridge has of the field's techniques, by their names in the surveys. The
same list is printed by ` + "`ridge techniques`, one row by `ridge techniques ID`" + `. This page is generated from
internal/techniques, whose test checks that what is named here exists; test.sh
fails if a test that is named here fails, does not run or, when CI=true, is
skipped. The output of the command in the column "shown by" shows what is
claimed. What the surveys' atlas asks for, and ridge has not, is missing
(internal/techniques/testdata/atlas.tsv).

| technique | what it is | used by | code | tests | shown by | benchmark | missing |
|---|---|---|---|---|---|---|---|
`)
	for _, x := range All {
		row := []string{x.ID, x.What, "`" + x.Use + "`", "[" + x.Code + "](../" + x.Code + ")", strings.Join(x.Tests, ", "), "`" + x.Show + "`", x.Bench, x.Missing}
		for i := range row { // a bar would end the cell
			row[i] = strings.ReplaceAll(row[i], "|", `\|`)
		}
		fmt.Fprintf(&b, "| %s |\n", strings.Join(row, " | "))
	}
	return b.Bytes()
}
