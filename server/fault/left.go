package fault

// Left is something of a request that the model does not get. It is no error.
type Left struct {
	Where   string // such as "tool 3" or "message 2: part 1"
	What    string // and why
	Picture bool   // a picture or another medium that the model has no sense for
}

// String returns "WHERE: WHAT".
func (l Left) String() string { return l.Where + ": " + l.What }
