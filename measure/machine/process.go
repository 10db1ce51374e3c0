package machine

// Process is the memory of this process, in bytes. Numbers that the system does
// not tell are 0.
type Process struct {
	Peak int64 `json:"peak"` // the most that it ever had (VmHWM)
	Anon int64 `json:"anon"` // of its own, now
	File int64 `json:"file"` // of files that are mapped, now: the program's own too
}

// ReadProcess asks the system. It knows Linux.
func ReadProcess() Process {
	const path = "/proc/self/status"
	return Process{kilobytes(field(path, "VmHWM")), kilobytes(field(path, "RssAnon")), kilobytes(field(path, "RssFile"))}
}
