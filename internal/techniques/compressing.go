package techniques

// Methods that make models smaller.
var compressing = []Technique{
	{
		ID:      "gptq",
		What:    "GPTQ: columns rounded one after the other, later ones pay for the errors of earlier ones; in ten of GGUF's formats, one layer at a time",
		Use:     "ridge quantize MODEL TYPE --method gptq --calibration TEXT -o FILE",
		Code:    "compress/gptq.go",
		Tests:   []string{"compress TestMethodsAgainstNumpy", "compress TestGrids", "compress TestMethodsLowerOutputError", "compress TestSingularInputs", "compress TestMethodsLowerDivergence"},
		Show:    "go test -v -run TestMethodsLowerDivergence ./compress",
		Missing: "layers read what the float model computes, not what those before them compute after rounding; matrices of experts are rounded plainly",
	},
	{
		ID:      "awq",
		What:    "AWQ: columns with large inputs multiplied before rounding, what comes before them divided; of twenty exponents the best for each matrix",
		Use:     "ridge quantize MODEL TYPE --method awq --calibration TEXT -o FILE",
		Code:    "compress/awq.go",
		Tests:   []string{"compress TestMethodsAgainstNumpy", "compress TestFoldsAreExact", "compress TestMethodsLowerDivergence"},
		Show:    "go test -v -run 'TestFoldsAreExact|TestMethodsLowerDivergence' ./compress",
		Missing: "at 3 bits (Q3_K_S) no difference from plain rounding on the model of the tests; clipping; families other than Llama, Qwen 2 and Qwen 3",
	},
	{
		ID:      "quantease",
		What:    "QuantEase: GPTQ's codes moved one after the other to where the error of the outputs is least, sweep after sweep; in ten of GGUF's formats",
		Use:     "ridge quantize MODEL TYPE --method quantease --calibration TEXT -o FILE",
		Code:    "compress/quantease.go",
		Tests:   []string{"compress TestCodesAgainstNumpy", "compress TestQuantEaseLowersErrorEachSweep", "compress TestMethodsLowerOutputError"},
		Show:    "go test -v -run 'TestQuantEaseLowersErrorEachSweep|TestMethodsLowerOutputError' ./compress",
		Missing: "its form with weights kept apart; matrices of experts",
	},
	{
		ID:      "nf4",
		What:    "NF4: quantiles of a normal distribution times the largest magnitude of 64 weights, and magnitudes as bytes; a reference, values are floats and bytes are counted",
		Use:     "ridge lab quant MODEL --calibration TEXT --file TEXT --dir DIR --only quantiles",
		Code:    "compress/nf4.go",
		Tests:   []string{"compress TestNF4", "compress TestOtherMethodsAgainstNumpy"},
		Show:    "go test -v -run 'TestNF4$' ./compress",
		Missing: "no kernel and no file; even steps from the least to the largest weight of a group, which take as many bytes, are nearer than NF4 (the test prints it); magnitudes as integers of 8 bits, the paper has floats of 8 bits",
	},
	{
		ID:      "auto-mixed-precision",
		What:    "a type for each matrix: a scan measures what each one's smallest type costs, a knapsack deals out a budget of bytes, or the smallest file within a divergence is found",
		Use:     "ridge quantize MODEL auto --size 500M --calibration TEXT -o FILE",
		Code:    "compress/choose.go",
		Tests:   []string{"compress TestChooseAgainstAll", "compress TestMixedLowersDivergence"},
		Show:    "go test -v -run 'TestChooseAgainstAll|TestMixedLowersDivergence' ./compress",
		Missing: "a second model; matrices of experts; the choice in the file's keys; by speed",
	},
}
