package compress

// AWQAlways is AWQ with one exponent, whether it is the best or not.
func AWQAlways(power float64) Pass { return AWQ{always: true, power: power} }
