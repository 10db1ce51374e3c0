package jinja

import (
	"fmt"
	"strings"
	"time"
)

// strftime formats t as C's strftime does in the C locale.
func strftime(t time.Time, format string) string {
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] != '%' || i+1 == len(format) {
			b.WriteByte(format[i])
			continue
		}
		i++
		pad := true
		if format[i] == '-' && i+1 < len(format) { // GNU: no padding
			pad = false
			i++
		}
		b.WriteString(directive(t, format[i], pad))
	}
	return b.String()
}

// layouts are directives that the time package knows.
var layouts = map[byte]string{
	'Y': "2006", 'y': "06", 'm': "01", 'd': "02", 'e': "_2", 'H': "15", 'I': "03", 'M': "04", 'S': "05", 'j': "002",
	'B': "January", 'b': "Jan", 'h': "Jan", 'A': "Monday", 'a': "Mon", 'p': "PM",
	'D': "01/02/06", 'x': "01/02/06", 'F': "2006-01-02", 'T': "15:04:05", 'X': "15:04:05", 'R': "15:04",
	'c': "Mon Jan _2 15:04:05 2006",
}

func directive(t time.Time, c byte, pad bool) string {
	if layout, ok := layouts[c]; ok {
		s := t.Format(layout)
		if !pad && len(s) > 1 && len(layout) <= 3 {
			return strings.TrimLeft(s[:len(s)-1], "0 ") + s[len(s)-1:]
		}
		return s
	}
	num := func(n, width int) string {
		if !pad {
			width = 1
		}
		return fmt.Sprintf("%0*d", width, n)
	}
	year, week := t.ISOWeek()
	day, monday := t.YearDay()+6, (int(t.Weekday())+6)%7
	switch c {
	case 'C':
		return num(t.Year()/100, 2)
	case 'f':
		return fmt.Sprintf("%06d", t.Nanosecond()/1000)
	case 'w':
		return num(int(t.Weekday()), 1)
	case 'u':
		return num(monday+1, 1)
	case 'U': // weeks from the first Sunday
		return num((day-int(t.Weekday()))/7, 2)
	case 'W': // weeks from the first Monday
		return num((day-monday)/7, 2)
	case 'V':
		return num(week, 2)
	case 'G':
		return num(year, 4)
	case 'n':
		return "\n"
	case 't':
		return "\t"
	case '%':
		return "%"
	case 'z', 'Z': // Python's now() has no time zone
		return ""
	case 's':
		return fmt.Sprint(t.Unix())
	}
	return "%" + string(c)
}
