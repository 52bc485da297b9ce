// Package policy holds every yes and no: which tools a run is offered (five
// gates, one AND), what is said of a call (the approval ladder, the one rule
// and the floor), which tools run where nobody can be asked, and who may
// decide a request.
//
// Everything here is pure (no clock, no storage, no state) but [Ask] and
// [AskFloor], which call the user's own functions. Every no carries its reason
// and its source, and everything unclear refuses.
//
// The way of one call: [Gates.Refuses], [Ask] and [AskFloor] for the opinions,
// [Judge] for the verdict, [MayDecide] for a person's answer.
package policy
