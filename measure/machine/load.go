package machine

import (
	"strconv"
	"strings"
)

// LoadAverage returns the number of threads that ran or wanted to run in the
// last minute, on average, or 0 if the system does not tell. Measurements on a
// machine with other work mean little.
func LoadAverage() float64 {
	first, _, _ := strings.Cut(firstLine("/proc/loadavg"), " ")
	v, _ := strconv.ParseFloat(first, 64)
	return v
}
