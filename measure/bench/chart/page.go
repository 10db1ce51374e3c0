package chart

import (
	"encoding/base64"
	"fmt"
	"html"
	"html/template"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// Figure is a plot of a page, and the name of its files.
type Figure struct {
	Name, SVG string
}

// Slug returns a title as the name of a file.
func Slug(title string) string {
	return strings.Join(strings.FieldsFunc(strings.ToLower(title), func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9')
	}), "-")
}

// The colours of lines and of the page, on light ground and on dark.
var (
	lightColours = [Colours]string{"#3b6fd4", "#b45309", "#1f8a63", "#8e5bd0", "#946200", "#59625e"}
	darkColours  = [Colours]string{"#7aa5f5", "#f0a35a", "#58c99b", "#bd95ee", "#e0c158", "#a3ada8"}
)

// variables is the list of colours as a style sheet names them.
func variables(of [Colours]string) template.CSS {
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
	for i := range Colours {
		fmt.Fprintf(&b, ".l.c%d{stroke:var(--c%d)}.b.c%d{background:var(--c%d)}", i, i, i, i)
	}
	return template.CSS(b.String()) // #nosec: constants
}()

// Alone returns the figure as a file of its own, black on white: programs that know
// no style sheets with variables read it too.
func (f *Figure) Alone() string {
	style := string(figureStyle)
	for i, c := range lightColours {
		style = strings.ReplaceAll(style, fmt.Sprintf("var(--c%d)", i), c)
	}
	style = strings.NewReplacer("currentColor", "#1c211f", "#8883", "#d9dbda").Replace(style)
	head, body, _ := strings.Cut(f.SVG, ">")
	var size [4]string
	_, box, _ := strings.Cut(head, `viewBox="`)
	box, _, _ = strings.Cut(box, `"`)
	copy(size[:], strings.Fields(box))
	return strings.Replace(head, "<svg", fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" width="%s" height="%s" font-family="sans-serif"`, size[2], size[3]), 1) +
		`><style>` + html.EscapeString(style) + `</style><rect width="100%" height="100%" fill="#fff"/>` + body + "\n"
}

// Page returns the figure as part of a page, with what saves it.
func (f *Figure) Page() template.HTML {
	link := "data:image/svg+xml;base64," + base64.StdEncoding.EncodeToString([]byte(f.Alone()))
	return template.HTML(fmt.Sprintf(`<figure>%s<figcaption><a download="%s.svg" href="%s">SVG</a> <a download="%s.png" data-png href="%s">PNG</a></figcaption></figure>`, f.SVG, f.Name, link, f.Name, link)) // #nosec: escaped where it is made
}

// SavePNG makes the links to PNG files: a browser paints the other file.
const SavePNG = `for (const a of document.querySelectorAll("a[data-png]")) a.onclick = async (e) => {
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

// WriteFiles writes figures as SVG files into a folder, which it makes if there is
// none.
func WriteFiles(dir string, figures []Figure) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, f := range figures {
		if err := os.WriteFile(filepath.Join(dir, f.Name+".svg"), []byte(f.Alone()), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// NewPage returns the template of a page with the given body. Colours are classes c0, c1
// and so on; an element of class b, too, is a patch of one.
func NewPage(body string, funcs template.FuncMap) *template.Template {
	return template.Must(template.Must(template.New("page").Funcs(funcs).Parse(frame)).New("body").Parse(body))
}

// WritePage writes a page whose body gets data.
func WritePage(w io.Writer, page *template.Template, title string, data any) error {
	return page.ExecuteTemplate(w, "page", map[string]any{
		"Title": title, "Body": data, "Style": figureStyle, "Light": variables(lightColours), "Dark": variables(darkColours), "Save": template.JS(SavePNG),
	})
}

const frame = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{{.Title}}</title>
<style>
:root{color-scheme:light dark;--ground:#fbfbfa;--ink:#1c211f;--sunk:#f1f2f0{{.Light}}}
@media(prefers-color-scheme:dark){:root{--ground:#151816;--ink:#e8ebe9;--sunk:#262b28{{.Dark}}}}
body{font:14px/1.45 system-ui,sans-serif;background:var(--ground);color:var(--ink);margin:2em auto;max-width:1120px;padding:0 1em}
h1{font-size:1.4em}h2{font-size:1.1em;margin-top:2.2em}
table{border-collapse:collapse}th,td{padding:.2em .7em;text-align:right;border-bottom:1px solid #8884}th:first-child,td:first-child{text-align:left}
pre{font-size:12px;overflow-x:auto;background:var(--sunk);border-radius:8px;padding:.8em}
.plots{display:grid;grid-template-columns:repeat(auto-fit,minmax(340px,1fr));gap:16px}
svg{width:100%;height:auto}figure{margin:0}figcaption{font-size:12px;text-align:right}figcaption a{color:inherit}
{{.Style}}
.b{display:inline-block;width:.9em;height:.9em;margin-right:.4em;vertical-align:-.1em}
</style></head><body>
<h1>{{.Title}}</h1>
{{template "body" .Body}}<script>{{.Save}}</script>
</body></html>
`
