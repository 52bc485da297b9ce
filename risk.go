package ringi

// Risk says how closely a person should look at a request. It orders lists, and
// is no part of any decision.
type Risk string

// The risks. What is none of them, the zero value among it, is RiskHigh.
const (
	// RiskHigh: the run has read text from outside, the tool is somebody else's
	// or runs elsewhere, the input hides some of its characters from a reader, or
	// nobody knows whether a call ran.
	RiskHigh Risk = "high"
	// RiskMedium: the call changes something, or says nothing of what it does.
	RiskMedium Risk = "medium"
	// RiskLow: the call reads.
	RiskLow Risk = "low"
)

// Risks are all risks, the highest first.
func Risks() []Risk { return []Risk{RiskHigh, RiskMedium, RiskLow} }

// OrHigh is r, or RiskHigh where r is no risk of these.
func (r Risk) OrHigh() Risk {
	if r == RiskMedium || r == RiskLow {
		return r
	}
	return RiskHigh
}

// rank is 0 for the highest.
func (r Risk) rank() int {
	switch r {
	case RiskMedium:
		return 1
	case RiskLow:
		return 2
	}
	return 0
}
