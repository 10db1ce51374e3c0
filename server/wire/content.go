package wire

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"mime"
	"strconv"
	"strings"
	"unicode/utf8"

	"ridge/server/fault"
)

// ContentText is the text of a message's content: a string, or a list of parts. i is
// the message's number, -1 for none. What models of text have no sense for becomes a
// line that says so, and is added to left.
func ContentText(raw json.RawMessage, i int, left *[]fault.Left) (string, error) {
	return (&contentReader{where: fmt.Sprintf("message %d", i), left: left}).content(raw)
}

// contentReader reads the content of one message.
type contentReader struct {
	where string
	left  *[]fault.Left
	depth int
}

// maxContentDepth bounds contents within parts: documents have contents.
const maxContentDepth = 4

func (c *contentReader) content(raw json.RawMessage) (string, error) {
	var text string
	if len(raw) == 0 || json.Unmarshal(raw, &text) == nil {
		return text, nil
	}
	var parts []json.RawMessage
	if json.Unmarshal(raw, &parts) != nil {
		return "", fault.BadRequest("messages", "%s: content: expected a string or a list of parts, found %s", c.where, fault.Excerpt(raw))
	}
	if c.depth++; c.depth > maxContentDepth {
		return "", fault.BadRequest("messages", "%s: content: expected contents within contents at most %d deep, found more", c.where, maxContentDepth)
	}
	defer func() { c.depth-- }()
	var texts []string
	for j, p := range parts {
		where := fmt.Sprintf("%s: part %d", c.where, j)
		text, known, err := c.part(p, where)
		if err != nil {
			return "", err
		}
		if !known {
			return "", fault.BadRequest("messages", "%s: type: expected text, found %s", where, fault.Excerpt(p))
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, "\n"), nil
}

// part is a part of a content in any API's form.
type part struct {
	Type     string          `json:"type"`
	Text     *string         `json:"text"`
	Refusal  string          `json:"refusal"`
	Title    string          `json:"title"`
	Context  string          `json:"context"`
	Source   json.RawMessage `json:"source"`  // of documents an object, of results of a search a string
	Content  json.RawMessage `json:"content"` // of results of a search
	ToolName string          `json:"tool_name"`
	file
	File *file `json:"file"`
}

// file is a file in OpenAI's form.
type file struct {
	Name string `json:"filename"`
	Data string `json:"file_data"`
}

// part is the text of one part. known is false for one of a type that nobody here has
// heard of and that has no text.
func (c *contentReader) part(raw json.RawMessage, where string) (text string, known bool, err error) {
	var p part
	if err := json.Unmarshal(raw, &p); err != nil {
		return "", false, fault.BadRequest("messages", "%s: expected an object with a type, found %s", where, fault.Excerpt(raw))
	}
	switch p.Type {
	case "refusal":
		return p.Refusal, true, nil
	case "image_url", "image", "input_image", "computer_screenshot":
		return c.unseen(where, "picture", p.Title), true, nil
	case "input_audio", "audio", "video_url", "video":
		return c.unseen(where, "sound or film", p.Title), true, nil
	case "document":
		text, err := c.document(&p, where)
		return text, true, err
	case "file", "input_file":
		if p.File == nil {
			p.File = &p.file
		}
		return c.file(p.File, where), true, nil
	case "search_result":
		text, err := c.content(p.Content)
		source := ""
		_ = json.Unmarshal(p.Source, &source) // "" for what is no string
		return titled("search result", strings.TrimSpace(p.Title+" "+source), text), true, err
	case "tool_reference":
		return "[tool: " + p.ToolName + "]", true, nil
	}
	if p.Text == nil {
		return "", false, nil
	}
	return *p.Text, true, nil
}

// unseen notes a medium that the model has no sense for, and is the line that stands
// for it.
func (c *contentReader) unseen(where, what, title string) string {
	*c.left = append(*c.left, fault.Left{Where: where, What: what + ": left out: this model reads text only", Picture: true})
	if title != "" {
		what += " " + strconv.Quote(title)
	}
	return "[" + what + ": left out, this model reads text only]"
}

// document is the text of a document in Anthropic's form.
func (c *contentReader) document(p *part, where string) (string, error) {
	var s struct {
		Type    string          `json:"type"`
		Media   string          `json:"media_type"`
		Data    string          `json:"data"`
		Content json.RawMessage `json:"content"`
	}
	if len(p.Source) > 0 && json.Unmarshal(p.Source, &s) != nil {
		return "", fault.BadRequest("messages", "%s: source: expected an object, found %s", where, fault.Excerpt(p.Source))
	}
	text, err := "", error(nil)
	switch s.Type {
	case "text":
		text = s.Data
	case "content":
		text, err = c.content(s.Content)
	default:
		decoded, ok := plainText(s.Media, s.Data)
		if !ok {
			return c.unseen(where, "document", p.Title), nil
		}
		text = decoded
	}
	return titled("document", p.Title, strings.TrimLeft(p.Context+"\n"+text, "\n")), err
}

// file is the text of a file, if it is one of text.
func (c *contentReader) file(f *file, where string) string {
	media, data, ok := strings.Cut(strings.TrimPrefix(f.Data, "data:"), ";base64,")
	if !ok {
		media, data = "text/plain", f.Data
	}
	if text, ok := plainText(media, data); ok && text != "" {
		return titled("file", f.Name, text)
	}
	return c.unseen(where, "file", f.Name)
}

// plainText decodes data that is text, as its media type says.
func plainText(media, base64Data string) (string, bool) {
	if base, _, err := mime.ParseMediaType(media); err != nil || !strings.HasPrefix(base, "text/") && base != "application/json" {
		return "", false
	}
	b, err := base64.StdEncoding.DecodeString(base64Data)
	return string(b), err == nil && utf8.Valid(b)
}

// titled is a text with a line above that says what it is.
func titled(what, title, text string) string {
	return "[" + strings.TrimSpace(what+" "+title) + "]\n" + text
}
