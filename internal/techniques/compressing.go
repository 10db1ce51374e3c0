package techniques

// Methods that make models smaller.
var compressing = []Technique{
	{
		ID:      "gptq",
		What:    "GPTQ: columns rounded one after the other, later ones pay for the errors of earlier ones; in ten of GGUF's formats, one layer at a time",
		Use:     "ridge quantize MODEL TYPE --method gptq --calibration TEXT -o FILE",
		Code:    "compress/gptq.go",
		Tests:   []string{"compress TestMethodsAgainstNumpy", "compress TestGrids", "compress TestGPTQLowersOutputError", "compress TestSingularInputs", "compress TestMethodsLowerDivergence"},
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
		ID:      "auto-mixed-precision",
		What:    "a type for each matrix: a scan measures what each one's smallest type costs, a knapsack deals out a budget of bytes, or the smallest file within a divergence is found",
		Use:     "ridge quantize MODEL auto --size 500M --calibration TEXT -o FILE",
		Code:    "compress/choose.go",
		Tests:   []string{"compress TestChooseAgainstAll", "compress TestMixedLowersDivergence"},
		Show:    "go test -v -run 'TestChooseAgainstAll|TestMixedLowersDivergence' ./compress",
		Missing: "a second model; matrices of experts; the choice in the file's keys; by speed",
	},
}
