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

func directive(t time.Time, c byte, pad bool) string {
	num := func(n, width int) string {
		if !pad {
			width = 1
		}
		return fmt.Sprintf("%0*d", width, n)
	}
	hour12 := (t.Hour()+11)%12 + 1
	switch c {
	case 'Y':
		return num(t.Year(), 4)
	case 'y':
		return num(t.Year()%100, 2)
	case 'C':
		return num(t.Year()/100, 2)
	case 'm':
		return num(int(t.Month()), 2)
	case 'd':
		return num(t.Day(), 2)
	case 'e':
		return fmt.Sprintf("%2d", t.Day())
	case 'H':
		return num(t.Hour(), 2)
	case 'I':
		return num(hour12, 2)
	case 'M':
		return num(t.Minute(), 2)
	case 'S':
		return num(t.Second(), 2)
	case 'f':
		return fmt.Sprintf("%06d", t.Nanosecond()/1000)
	case 'j':
		return num(t.YearDay(), 3)
	case 'B':
		return t.Format("January")
	case 'b', 'h':
		return t.Format("Jan")
	case 'A':
		return t.Format("Monday")
	case 'a':
		return t.Format("Mon")
	case 'p':
		return t.Format("PM")
	case 'w':
		return num(int(t.Weekday()), 1)
	case 'u':
		return num((int(t.Weekday())+6)%7+1, 1)
	case 'U': // weeks from the first Sunday
		return num((t.YearDay()+6-int(t.Weekday()))/7, 2)
	case 'W': // weeks from the first Monday
		return num((t.YearDay()+6-(int(t.Weekday())+6)%7)/7, 2)
	case 'V':
		_, w := t.ISOWeek()
		return num(w, 2)
	case 'G':
		y, _ := t.ISOWeek()
		return num(y, 4)
	case 'D', 'x':
		return t.Format("01/02/06")
	case 'F':
		return t.Format("2006-01-02")
	case 'T', 'X':
		return t.Format("15:04:05")
	case 'R':
		return t.Format("15:04")
	case 'c':
		return t.Format("Mon Jan _2 15:04:05 2006")
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
