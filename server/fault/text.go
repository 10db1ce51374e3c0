package fault

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"path/filepath"
	"reflect"
	"regexp"
)

// hidden stands in the log for what a client wrote.
const hidden = "…"

// LogText is what the log may have of an error: all but what clients wrote, which
// errors quote. What is expected, what numbers were found and what the server
// itself failed at stays.
func LogText(err error) string {
	if errors.Is(err, context.Canceled) {
		return "the client left"
	}
	e := As(err)
	switch {
	case e.Code == codeInternal && e.Status == http.StatusInternalServerError:
		return Unquoted(err.Error()) // nobody foresaw it
	case e.logged != "":
		return e.logged
	}
	return Unquoted(e.Message)
}

// quotes are texts in quotes of any kind.
var quotes = regexp.MustCompile("\"(?:[^\"\\\\]|\\\\.)*\"?|`[^`]*`?|'[^']*'")

// Unquoted is a text for the log without what is in quotes in it.
func Unquoted(s string) string {
	const most = 1000
	if len(s) > most {
		s = s[:most]
	}
	return quotes.ReplaceAllString(s, hidden)
}

// absolute finds absolute paths of files, also those in quotes.
var absolute = regexp.MustCompile(`(^|[\s"'(=:])((?:/|[A-Za-z]:\\)[^\s"':,;)]+)`)

// WithoutPaths is a text for clients in which files have only their names: where
// they lie is no client's business.
func WithoutPaths(s string) string {
	return absolute.ReplaceAllStringFunc(s, func(m string) string {
		sub := absolute.FindStringSubmatch(m)
		return sub[1] + filepath.Base(filepath.ToSlash(sub[2]))
	})
}

// texts makes the text of an error for the client and that for the log. What
// the server itself failed at (own) is in the log as it is.
func texts(own bool, format string, a []any) (message, logged string) {
	shown, kept := make([]any, len(a)), make([]any, len(a))
	for i, v := range a {
		shown[i], kept[i] = v, v
		err, isErr := v.(error)
		var path *fs.PathError
		if isErr && (own || errors.As(err, &path)) {
			shown[i] = WithoutPaths(err.Error())
		}
		switch {
		case own:
		case isErr:
			kept[i] = hidden
			if api, ok := v.(*Error); ok {
				kept[i] = LogText(api)
			}
		default:
			if k := reflect.ValueOf(v).Kind(); k < reflect.Bool || k > reflect.Complex128 {
				kept[i] = hidden
			}
		}
	}
	return fmt.Sprintf(format, shown...), fmt.Sprintf(format, kept...)
}
