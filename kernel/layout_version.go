package kernel

// LayoutVersion stands for the packed form of all formats on all tiers but
// cpu.Ref. It changes when the bytes of any do, so that what an earlier version
// of the program packed and kept is not taken for its own.
const LayoutVersion = 2
