package techniques

// Fewer steps for a token.
var speculation = []Technique{
	{
		ID:      "speculative-decoding",
		What:    "guesses of next tokens are rows of the step; each token is drawn from its own row with the random number of its place, so that seeded and greedy texts are those without guesses",
		Use:     "ridge run --speculative ngram, ridge serve --speculative draft=MODEL",
		Code:    "engine/draft.go",
		Tests:   []string{"sample TestVerifyDistribution", "sample TestVerifyEqualsSample", "engine TestOneAnswerWithDrafts", "engine TestJumpAheadWithDrafts", "engine TestOneAnswerWithDraftsOfTrainedModel", "engine TestDraftsSaveSteps", "spec TestSmall", "engine TestDraftAllocations", "engine TestStatesWithDrafts", "kvcache TestKeepState"},
		Show:    "ridge lab spec tiny",
		Bench:   "ridge lab spec MODEL --data FILE",
		Missing: "drafters that draw, with the rule min(1, p/q); states of rows within a step: what was right before a wrong guess is computed twice",
	},
	{
		ID:      "pld-llma",
		What:    "prompt lookup: the place of the text that is most like its end, found by hashes of pairs, is copied; or by a suffix automaton that of this text or of earlier ones of the tenant",
		Use:     "ridge run --speculative ngram, ridge serve --speculative suffix",
		Code:    "spec/ngram.go",
		Tests:   []string{"spec TestNGramEqualsSearch", "spec TestNGramGoesOn", "spec TestNGramAllocations", "spec FuzzNGram", "spec TestAutomatonEqualsSearch", "spec TestSuffixesOfTenant", "spec TestSuffixesBounded", "engine TestSuffixesOfRequests"},
		Show:    "ridge lab spec tiny",
		Bench:   "ridge lab spec MODEL --data FILE",
		Missing: "reference texts beside the prompt",
	},
	{
		ID:      "rest",
		What:    "what came most often behind the longest piece that is like the end is found in the suffix array of stored texts",
		Use:     "ridge spec build MODEL TEXT... -o FILE, ridge serve --speculative rest=FILE",
		Code:    "spec/datastore.go",
		Tests:   []string{"spec TestDatastoreEqualsSearch", "spec TestDatastoreRefused", "spec TestDatastoreAllocations", "spec FuzzDatastore"},
		Show:    "ridge lab spec MODEL --speculative rest=FILE",
		Bench:   "ridge lab spec MODEL --speculative rest=FILE --data FILE",
		Missing: "trees of several continuations",
	},
	{
		ID:      "adaptive-speculation",
		What:    "as many guesses are verified as make the most tokens in the predicted time of the step: how often those of a class come true is learned from all guesses, verified or not, for each request and for all; predictions are corrected by steps with guesses and without, and what may be lost is bounded by what was gained",
		Use:     "ridge serve",
		Code:    "spec/control.go",
		Tests:   []string{"spec TestControllerNeverLoses", "spec TestControllerNearBest", "spec TestChoose", "spec TestChooseNothing", "spec TestBook"},
		Show:    "go test -v -run 'TestController|TestChoose|TestBook' ./spec",
		Bench:   "ridge lab spec MODEL --data FILE --batch 8",
		Missing: "a bound on the time between tokens",
	},
}
