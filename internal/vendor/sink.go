package vendor

import (
	"errors"

	"github.com/ringi-dev/ringi"
)

// errLeft ends a stream whose reader has gone.
var errLeft = errors.New("reader left the stream")

// Sink hands a model's events out until the reader leaves.
type Sink struct {
	yield func(ringi.ModelEvent, error) bool
	left  bool
}

// NewSink makes a sink of a loop's yield.
func NewSink(yield func(ringi.ModelEvent, error) bool) *Sink { return &Sink{yield: yield} }

// Put hands out an event. It is an error where the reader has left: then nothing
// more is read, and [Sink.End] tells nobody.
func (s *Sink) Put(ev ringi.ModelEvent) error {
	if !s.left && !s.yield(ev, nil) {
		s.left = true
	}
	if s.left {
		return errLeft
	}
	return nil
}

// End tells the reader that the stream failed; nil tells nothing.
func (s *Sink) End(err error) {
	if err != nil && !s.left {
		s.yield(ringi.ModelEvent{}, err)
	}
}
