package console

import (
	"fmt"
	"strings"

	"charm.land/bubbles/v2/key"
	"charm.land/bubbles/v2/textarea"
	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
)

// editor is what a person sees at the bottom of a screen: the line that is being
// written, messages that wait for their turn, and the message that is edited.
type editor struct {
	screen   *screen
	complete func(line string) []string
	history  *history

	area     textarea.Model
	text     bool // the message is text, whatever it begins with: it was pasted
	pasted   pastes
	at       int    // of the history, its length for none
	draft    string // what was typed before the history was looked into
	search   string // what Ctrl-R looks for, while it does
	seeking  bool
	idle     bool // somebody waits for a message
	waiting  []entered
	tail     string
	note     string // said below the message until the next key
	width    int
	quitting bool
}

// maxShown bounds the waiting messages that are shown.
const maxShown = 3

func newEditor(s *screen, complete func(string) []string, h *history) *editor {
	e := &editor{screen: s, complete: complete, history: h, at: len(h.entries), area: textarea.New(), width: 80}
	a := &e.area
	a.SetStyles(textarea.Styles{})
	a.SetVirtualCursor(false)
	a.SetPromptFunc(len(prompt), func(i textarea.PromptInfo) string { return promptOf(i.LineNumber) })
	a.ShowLineNumbers = false
	a.MaxWidth, a.MaxContentHeight = 0, maxLines
	a.DynamicHeight, a.MinHeight, a.MaxHeight = true, 1, 8
	k := &a.KeyMap
	k.InsertNewline.SetKeys("alt+enter", "shift+enter")
	// The terminal selects, copies and pastes.
	for _, b := range []*key.Binding{
		&k.SelectCharacterForward, &k.SelectCharacterBackward, &k.SelectWordForward, &k.SelectWordBackward,
		&k.SelectLineUp, &k.SelectLineDown, &k.SelectAll, &k.CopySelection, &k.Paste,
	} {
		b.Unbind()
	}
	a.SetHeight(1)
	a.Focus()
	return e
}

// Init does nothing: the size comes by itself.
func (e *editor) Init() tea.Cmd { return nil }

// Update takes what happened.
func (e *editor) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		e.width = msg.Width
		e.screen.resize(msg.Width, msg.Height)
		e.area.MaxHeight = max(1, msg.Height/3)
		e.area.SetWidth(msg.Width)
	case unfinished:
		e.tail = string(msg)
	case wanted:
		e.idle = true
		e.give()
	case interrupt:
		return e, e.interrupt()
	case tea.PasteMsg:
		e.note = ""
		e.paste(msg.Content)
	case tea.KeyPressMsg:
		e.note = ""
		return e, e.key(msg)
	}
	return e, nil
}

// key takes a key.
func (e *editor) key(msg tea.KeyPressMsg) tea.Cmd {
	name := msg.String()
	if name != "ctrl+r" {
		e.seeking = false
	}
	switch name {
	case "enter", "ctrl+j": // a line feed is what Enter was before the terminal was taken over
		return e.enter()
	case "tab":
		if e.command() {
			e.completeCommand()
			return nil
		}
		return e.edit(tea.KeyPressMsg{Text: "\t"})
	case "ctrl+c":
		return e.interrupt()
	case "ctrl+d":
		if e.value() == "" {
			e.quitting = true
			e.screen.interrupt()
			return tea.Quit
		}
	case "ctrl+z":
		return tea.Suspend
	case "ctrl+l":
		return tea.ClearScreen
	case "ctrl+r":
		e.seek()
		return nil
	case "up", "ctrl+p":
		if e.area.Line() == 0 && e.area.LineInfo().RowOffset == 0 {
			e.recall(e.at - 1)
			return nil
		}
	case "down", "ctrl+n":
		if i := e.area.LineInfo(); e.area.Line() == e.area.LineCount()-1 && i.RowOffset >= i.Height-1 {
			e.recall(e.at + 1)
			return nil
		}
	}
	return e.edit(msg)
}

// edit lets the text area do what a key means to it.
func (e *editor) edit(msg tea.KeyPressMsg) tea.Cmd {
	msg.Text = shown(msg.Text)
	var cmd tea.Cmd
	e.area, cmd = e.area.Update(msg)
	if e.area.Value() == "" {
		e.text = false
		e.pasted = pastes{}
	}
	return cmd
}

// value is the message as it would be entered.
func (e *editor) value() string { return e.pasted.expand(meant(e.area.Value())) }

// command reports whether the message is a command.
func (e *editor) command() bool { return !e.text && strings.HasPrefix(e.area.Value(), "/") }

// set replaces the message.
func (e *editor) set(value string) {
	e.text, e.pasted = false, pastes{}
	e.area.SetValue(e.pasted.insert(value))
}

// paste takes what was pasted: text, unless it follows what makes a command or
// opens quotes.
func (e *editor) paste(content string) {
	content = strings.ReplaceAll(strings.ReplaceAll(content, "\r\n", "\n"), "\r", "\n")
	if content == "" {
		return
	}
	begun := e.area.Value()
	atStart := e.area.Line() == 0 && e.area.Column() == 0
	if atStart || !strings.HasPrefix(begun, "/") && !strings.HasPrefix(begun, quotes) {
		e.text = true
	}
	e.area.InsertString(e.pasted.insert(content))
	if e.text && strings.HasPrefix(e.area.Value(), "/") {
		e.note = "What is pasted is text. A command has to be typed."
	}
}

// enter gives the message away, or begins its next line.
func (e *editor) enter() tea.Cmd {
	typed := e.value()
	switch {
	case strings.TrimSpace(typed) == "":
		e.set("")
		return nil
	case !e.text && open(typed):
		return e.edit(tea.KeyPressMsg{Code: tea.KeyEnter, Mod: tea.ModAlt})
	}
	m := entered{Message: Message{Text: typed}, shown: meant(e.area.Value())}
	keep := typed
	if e.text {
		if strings.HasPrefix(typed, "/") || strings.HasPrefix(typed, quotes) {
			keep = " " + keep // it stays text when it is entered again
		}
	} else {
		m.Text, m.Command = unquote(typed), strings.HasPrefix(typed, "/")
	}
	if err := e.history.add(keep); err != nil {
		e.note = fmt.Sprintf("The message is not kept in the history: %v", err)
	}
	e.set("")
	e.at, e.draft = len(e.history.entries), ""
	e.waiting = append(e.waiting, m)
	e.give()
	return nil
}

// give hands the next message to who waits for it.
func (e *editor) give() {
	if !e.idle || len(e.waiting) == 0 {
		return
	}
	e.idle = false
	e.screen.next <- e.waiting[0]
	e.waiting = e.waiting[1:]
}

// interrupt stops what is being done, else what is being typed.
func (e *editor) interrupt() tea.Cmd {
	switch {
	case e.screen.interrupt():
		if n := len(e.waiting); n > 0 {
			e.note = fmt.Sprintf("%d waiting messages are dropped; they are in the history.", n)
			e.waiting = nil
		}
	case e.area.Value() != "":
		e.set("")
		e.at = len(e.history.entries)
	default:
		e.note = hint
	}
	return nil
}

// recall shows an entry of the history, or what was typed behind its end.
func (e *editor) recall(i int) {
	n := len(e.history.entries)
	if i < 0 || i > n {
		return
	}
	if e.at == n {
		e.draft = e.value()
	}
	if e.at = i; i == n {
		e.set(e.draft)
	} else {
		e.set(e.history.entries[i])
	}
}

// seek shows the last entry of the history that contains what was typed, and the
// ones before it when it is asked again.
func (e *editor) seek() {
	if !e.seeking {
		e.seeking, e.search = true, e.value()
	}
	i := e.history.before(min(e.at, len(e.history.entries)), e.search)
	if i < 0 {
		e.note = fmt.Sprintf("No earlier message contains %q.", e.search)
		return
	}
	e.recall(i)
}

// completeCommand goes on with a command as far as there is no choice, and shows
// the choice.
func (e *editor) completeCommand() {
	line := e.area.Value()
	all := e.complete(line)
	if len(all) == 0 {
		e.note = "No command begins like this; /? lists them."
		return
	}
	common := all[0]
	for _, s := range all[1:] {
		for !strings.HasPrefix(s, common) {
			common = common[:len(common)-1]
		}
	}
	if len(common) > len(line) {
		e.area.SetValue(common)
		return
	}
	var words []string
	for _, s := range all {
		f := strings.Fields(s)
		words = append(words, f[len(f)-1])
	}
	e.note = strings.Join(words, "  ")
}

// View is what is shown.
func (e *editor) View() tea.View {
	if e.quitting {
		return tea.NewView(e.tail)
	}
	var above []string
	if e.tail != "" {
		above = append(above, e.tail)
	}
	for i, m := range e.waiting {
		if i == maxShown {
			above = append(above, fmt.Sprintf("(%d more wait)", len(e.waiting)-i))
			break
		}
		first, _, more := strings.Cut(m.shown, "\n")
		if more {
			first += " …"
		}
		above = append(above, ansi.Truncate(prompt+expand(first, len(prompt))+" (waits)", e.width, "…"))
	}
	rows := append(above, e.area.View())
	if e.note != "" {
		rows = append(rows, wrap(clean(e.note), e.width)...)
	}
	v := tea.NewView(strings.Join(rows, "\n"))
	if v.Cursor = e.area.Cursor(); v.Cursor != nil {
		v.Cursor.Y += len(above)
	}
	return v
}
