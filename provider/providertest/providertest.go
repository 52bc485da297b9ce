// Package providertest is one suite that every provider of a language model
// passes. It drives a provider through the real engine, against a fake server
// that speaks the vendor's wire form, so what is shown is what a user gets:
// what goes out after a pause, what a cut stream does, how errors are classed.
//
// A provider brings a [Vendor]: how its model is made, how the vendor writes an
// answer, and how a request body is read. The bodies that it sends are kept in
// testdata/*.golden.json, and are held to the types that each vendor publishes for
// TypeScript; "go test -update" writes them anew. Where the environment has a key the same
// suite talks to the real vendor too.
package providertest

import (
	"encoding/json"
	"flag"
	"testing"
	"time"

	"github.com/ringi-dev/ringi"
)

var update = flag.Bool("update", false, "write golden request bodies anew")

// Setup is what a model is made with.
type Setup struct {
	// URL is the fake server's, without a trailing slash. Key is what the server
	// asks for.
	URL, Key string
	// Idle and Total bound a call; zero is the provider's default.
	Idle, Total time.Duration
}

// Vendor is what the suite knows of one provider and its vendor's wire form.
type Vendor struct {
	// Name names golden files: "<scenario>.<Name>.golden.json".
	Name string
	// Model makes the model under test.
	Model func(t testing.TB, s Setup) ringi.Model
	// Stream writes an answer as the vendor streams it, one string a frame, each
	// with all that ends it. The last frames close the stream.
	Stream func(a Answer) []string
	// Header is sent with every stream; nil is text/event-stream.
	Header map[string]string
	// Read reads a request body.
	Read func(body []byte) (*Request, error)
	// KeyIn reports whether a request carries the key as the vendor wants it.
	KeyIn func(header map[string][]string, key string) bool
	// Takes reports whether the vendor takes a call id that it did not make
	// itself. nil: the vendor has no ids.
	Takes func(id string) bool
	// FreeIDs says that a call may go out without an id, where the model wrote
	// none: it is then told apart by its place.
	FreeIDs bool
	// InputIsJSON says that a body holds a call's input as JSON rather than as a
	// text of it: then it comes back token by token, and not the blanks between them
	// nor the spelling of <, > and &.
	InputIsJSON bool
	// Faults are the vendor's own error answers, as its reference writes them.
	Faults []Fault
	// StreamFaults are streams that tell a fault.
	StreamFaults []Fault
	// Finishes are the finish reasons that [Stream] can write, besides a clean
	// end: length, content_filter.
	Finishes []ringi.FinishReason
	// KeepsReasoning says that reasoning of an earlier step is sent back, as the
	// vendor asks; Sealed is then what must stand in the next body, byte for byte.
	KeepsReasoning bool
	Sealed         string
	// NoUsage is what of a usage the vendor does not tell.
	NoUsage func(u *ringi.Usage)
	// LiveKey names the environment variable of a real key; Live makes a model
	// over the real vendor with it.
	LiveKey string
	Live    func(t testing.TB, key string) ringi.Model
}

// Answer is what a vendor's model answers.
type Answer struct {
	// N counts the answers of a server from 1, for ids of the vendor's own.
	N               int
	Text, Reasoning string
	// Refusal is a refusal in the vendor's own form, where it has one.
	Refusal string
	// Calls are asked for: ModelID, Tool and Input are written as they are.
	Calls []ringi.ToolCall
	// Fragment is how many bytes of text or input a frame holds; zero: all. The
	// inputs of several calls are streamed interleaved where the vendor does so.
	Fragment int
	Finish   ringi.FinishReason
	Usage    ringi.Usage
}

// Fault is a vendor's error, and what becomes of it.
type Fault struct {
	Name   string
	Status int
	Header map[string]string
	Body   string
	// Frames are the stream of a fault that is told in a stream.
	Frames []string
	Class  ringi.ModelErrorClass
	Code   string
	After  time.Duration
}

// Request is a request body as the suite reads it.
type Request struct {
	// System is the system prompt, Tools the names that are offered.
	System string
	Tools  []string
	// Parts is the conversation in order.
	Parts []Part
	// Messages are the elements of the conversation as they stand in the body,
	// and Rest the body without them: see [Split].
	Messages []json.RawMessage
	Rest     string
}

// PartKind says what a part of a conversation is.
type PartKind string

// The kinds.
const (
	PartUser      PartKind = "user"
	PartText      PartKind = "text"
	PartReasoning PartKind = "reasoning"
	PartCall      PartKind = "call"
	PartResult    PartKind = "result"
)

// Part is one part of a conversation.
type Part struct {
	Kind PartKind
	// ID and Tool are those of a call or a result; a vendor may leave Tool out of
	// a result, and one without ids leaves ID out.
	ID, Tool string
	// Text is the text, the call's input, or the result.
	Text string
}

// Run runs the suite.
func Run(t *testing.T, v Vendor) {
	t.Run("Turn", v.turns)
	t.Run("Pause", v.pauses)
	t.Run("Cut", v.cuts)
	t.Run("Fault", v.faults)
	t.Run("Slow", v.slow)
	t.Run("Live", v.live)
}
