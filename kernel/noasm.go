package kernel

// noAssembly is what stand-ins for assembly say on other architectures, where
// no tier calls them.
const noAssembly = "kernel: assembly called on a processor without it"
