package load

import (
	"encoding/base64"
	"fmt"
	"html"
	"html/template"
	"os"
	"path/filepath"
	"strings"
)

// figure is a plot of a page, and the name of its files.
type figure struct {
	name, svg string
}

// figures returns the plots of reports of one load: charts, and a timeline for each
// run. Their names begin with prefix.
func figures(reports []*Report, prefix string) (plots, lines []figure) {
	for _, c := range charts(reports) {
		plots = append(plots, figure{prefix + slug(c.title), c.svg()})
	}
	for _, r := range reports {
		if s := timelineSVG(r); s != "" {
			lines = append(lines, figure{prefix + slug("timeline "+r.label(true)), s})
		}
	}
	return plots, lines
}

// slug returns a title as the name of a file.
func slug(title string) string {
	return strings.Join(strings.FieldsFunc(strings.ToLower(title), func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9')
	}), "-")
}

// The colours of lines and of the page, on light ground and on dark.
var (
	lightColours = [colours]string{"#3b6fd4", "#b45309", "#1f8a63", "#8e5bd0", "#946200", "#59625e"}
	darkColours  = [colours]string{"#7aa5f5", "#f0a35a", "#58c99b", "#bd95ee", "#e0c158", "#a3ada8"}
)

// variables is the list of colours as a style sheet names them.
func variables(of [colours]string) template.CSS {
	var b strings.Builder
	for i, c := range of {
		fmt.Fprintf(&b, ";--c%d:%s", i, c)
	}
	return template.CSS(b.String()) // #nosec: constants
}

// figureStyle is how figures look.
var figureStyle = func() template.CSS {
	var b strings.Builder
	b.WriteString(`svg{font-size:11px}svg text{fill:currentColor}
.t{font-size:13px;font-weight:600}.x{text-anchor:middle}.y{text-anchor:end}
.a{fill:none;stroke:currentColor}.g{stroke:#8883}
.l{fill:none;stroke-width:1.6}
.k{fill:var(--c0)}.i{fill:var(--c1)}.f{fill:#e03131}.p{opacity:.35}.d{opacity:.6}
`)
	for i := range colours {
		fmt.Fprintf(&b, ".l.c%d{stroke:var(--c%d)}.b.c%d{background:var(--c%d)}", i, i, i, i)
	}
	return template.CSS(b.String()) // #nosec: constants
}()

// alone returns the figure as a file of its own, black on white: programs that know
// no style sheets with variables read it too.
func (f *figure) alone() string {
	style := string(figureStyle)
	for i, c := range lightColours {
		style = strings.ReplaceAll(style, fmt.Sprintf("var(--c%d)", i), c)
	}
	style = strings.NewReplacer("currentColor", "#1c211f", "#8883", "#d9dbda").Replace(style)
	head, body, _ := strings.Cut(f.svg, ">")
	var size [4]string
	_, box, _ := strings.Cut(head, `viewBox="`)
	box, _, _ = strings.Cut(box, `"`)
	copy(size[:], strings.Fields(box))
	return strings.Replace(head, "<svg", fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" width="%s" height="%s" font-family="sans-serif"`, size[2], size[3]), 1) +
		`><style>` + html.EscapeString(style) + `</style><rect width="100%" height="100%" fill="#fff"/>` + body + "\n"
}

// page returns the figure as part of a page, with what saves it.
func (f *figure) page() template.HTML {
	link := "data:image/svg+xml;base64," + base64.StdEncoding.EncodeToString([]byte(f.alone()))
	return template.HTML(fmt.Sprintf(`<figure>%s<figcaption><a download="%s.svg" href="%s">SVG</a> <a download="%s.png" data-png href="%s">PNG</a></figcaption></figure>`, f.svg, f.name, link, f.name, link)) // #nosec: escaped where it is made
}

// savePNG makes the links to PNG files: a browser paints the other file.
const savePNG = `for (const a of document.querySelectorAll("a[data-png]")) a.onclick = async (e) => {
  if (!a.dataset.png) {
    e.preventDefault();
    const image = new Image();
    image.src = a.href;
    await image.decode();
    const canvas = document.createElement("canvas");
    canvas.width = 3 * image.width;
    canvas.height = 3 * image.height;
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    a.href = canvas.toDataURL("image/png");
    a.dataset.png = "made";
    a.click();
  }
};`

// WriteFigures writes the plots of reports as SVG files into a folder, which it
// makes if there is none.
func WriteFigures(dir string, reports []*Report) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("load: figures: %w", err)
	}
	for i, g := range groupsOf(reports) {
		plots, lines := figures(g, fmt.Sprintf("%d-", i+1))
		for _, f := range append(plots, lines...) {
			if err := os.WriteFile(filepath.Join(dir, f.name+".svg"), []byte(f.alone()), 0o644); err != nil {
				return fmt.Errorf("load: figures: %w", err)
			}
		}
	}
	return nil
}
