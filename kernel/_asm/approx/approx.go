// Package approx has the numbers of the approximations in float32 that the
// kernels of all instruction sets share, so that they give the same bits.
package approx

// Polynomials, lowest coefficient first: minimax fits (Remez exchange, relative
// error of the function) with the coefficients rounded one by one, lowest
// first, and the rest fitted again.
var (
	// Exp is e^x for |x| <= ln2/2; error 3.2e-9.
	Exp = []float32{1, 1, 0.49999994, 0.166665167, 0.0416681021, 0.00836916547, 0.00138379959}
	// Exp2 is 2^x for |x| <= 1/2; error 2.1e-8.
	Exp2 = []float32{1, 0.693147242, 0.240226522, 0.0555031039, 0.00961769279, 0.00134066446, 0.000155946822}
	// Tanh is (tanh x - x)/x³ in x² for |x| <= 0.625; error of tanh 4.5e-9.
	Tanh = []float32{-0.333332807, 0.133314058, -0.0537365153, 0.0206281673, -0.0056922962}
	// Erfc is ln(erfc(z)/t) + z² in t = 1/(1+z/2), 0.16 <= t <= 1, the form of
	// Numerical Recipes' erfcc; error 5.5e-8.
	Erfc = []float32{-1.26545298, 0.998725533, 0.385912597, 0.0377816446, -0.00729694311, -0.0654430091, -0.712855279, 1.16835093, -0.68545413, 0.145731688}
	// Artanh is 2·artanh(x)/x in x² for 0 <= x <= 1/3, its series; error 1.4e-9.
	Artanh = []float32{2, 2. / 3, 2. / 5, 2. / 7, 2. / 9, 2. / 11, 2. / 13, 2. / 15}
)

const (
	Log2E = 1.44269504
	Ln2Hi = 0.693145752    // 9 trailing zero bits: exact times any exponent
	Ln2Lo = 1.42860677e-06 // ln2 - Ln2Hi

	// Results below the normal numbers, 2^-126, are made zero: nobody misses
	// them, and producing them takes processors a hundred cycles. e^89 rounds
	// to infinity.
	ExpMin, ExpMax, Exp2Min = -87, 89, -125

	TanhSmall = 0.625       // from here on tanh comes from the exponential
	ErfcScale = 0.353553391 // √½/2

	// GELU1 and GELU3 make the exponent of the sigmoid of GELU:
	// -2√(2/π)(x + 0.044715x³).
	GELU1, GELU3 = -1.59576912, -0.0713548163

	MaxF16 = 65504 // the largest finite binary16
)
