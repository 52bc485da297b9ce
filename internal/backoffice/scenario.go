package backoffice

// Scenario is a conversation that the demo offers to begin.
type Scenario struct {
	// Title names it on the start page.
	Title string
	// Text is the first user message.
	Text string
	// Try says what a newcomer may do with the request that it leads to.
	Try string
}

// Scenarios returns what the demo's start page offers, in its order. Each one
// leads to a question to a person, but for the last.
func Scenarios() []Scenario {
	return []Scenario{
		{"A broken kettle", "Mira Solheim asks for a refund for a broken kettle.",
			"Approve it; or deny it and give a reason; or change the amount; or answer in the tool's place. The agent goes on from what you decided."},
		{"A new address", "Jonas Weber has moved: change the address to Lindenallee 4, 50667 Köln, Germany.",
			"The request shows the difference. It is bound to what was read: change the address elsewhere in between, and you are asked again."},
		{"Who is calling?", "Amara Okafor is on the telephone: cancel order A-1057.",
			"Type what the caller says: card 4417, and yes. The agent never sees what you typed. Other digits fail the check."},
		{"Three lost parcels", "Refund the lost parcels A-1031, A-1032 and A-1033.",
			"Three requests of one turn: decide them one by one, in any order."},
		{"A bank that does not answer", "Refund the broken coffee grinder of order A-1088.",
			"Approve it. The bank answers too late, so nobody knows whether it was paid: you are asked what happened, and the late answer is shown as evidence."},
		{"A customer with a strange name", "Write to the customer of order A-1071.",
			"His name holds markup and characters that turn text round. The page shows them as what they are."},
		{"A bowl from Kyoto", "Refund order A-1064: the bowl arrived broken, 34,00 would be fair.",
			"Names, notes and items in several scripts, and an order that was paid back in part."},
		{"What can you do?", "Hello! What can you do?", "Nothing is asked here."},
	}
}
