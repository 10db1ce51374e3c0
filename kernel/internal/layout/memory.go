package layout

// An activation block holds 32 quantized activations and what the kernels need
// to know of them. All fields are little-endian; these are their places, in
// bytes, behind the codes q, of which there are 32, x ≈ d·q.
const (
	ActBlock = 64 // bytes of a block
	ActN     = 32 // int32: ActMagic - 128·Σq
	ActN0    = 36 // the same of the first half
	ActN1    = 40 // the same of the second half
	ActM     = 44 // int32: ActMagic
	ActDS    = 48 // float32: d·Σq
	ActDS0   = 52 // the same of the first half
	ActDS1   = 56 // the same of the second half
	ActD     = 60 // float32: d, the scale: max|x|/127

	ActMagic = 0x4b400000 // bits of float32(1.5 * 2^23)
	ActTiny  = 0x0d800000 // bits of 2^-100; a block of smaller values is stored as zeros
)

// A panel block is a block of 32 columns of a group with its codes unpacked to
// bytes and its scales to floats: minima and scales of the lanes, then the quads
// of codes. A form without halves has its own in M0 and S0.
const (
	PanelM1    = 0
	PanelS1    = 64
	PanelM0    = 128
	PanelS0    = 192
	PanelQ     = 256
	PanelBytes = 768

	// PanelPairs bounds the columns of a panel, in pairs of blocks: two take
	// 36 KB.
	PanelPairs = 12
	// PanelNext is the distance of the panels of two groups.
	PanelNext = 2 * PanelPairs * PanelBytes
	// PanelHead is the working memory in front of panels.
	PanelHead = 256
)

// Attention.
const (
	TileTokens = 16             // tokens of a tile of keys and values, one to a lane
	AttnBlock  = 4 * TileTokens // keys whose scores are computed together: a row of scores
	AttnTile   = 6              // queries whose scores are computed at once, at most

	// The head of a query's state: float32 values, and the mask of 64 keys.
	HeadMax   = 0
	HeadSum   = 4
	HeadAlpha = 8
	HeadSlope = 12
	HeadRamp  = 16
	HeadMask  = 20
)
