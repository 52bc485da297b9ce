package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/access"
	"github.com/ringi-dev/ringi/internal/sight"
)

// RevealBody names what to show.
type RevealBody struct {
	Places []string `json:"places,omitempty" doc:"JSON pointers out of the request's masked; none means all, and the texts whole."`
}

// Revealed are masked values in clear.
type Revealed struct {
	Values []RevealedValue `json:"values"`
	// Input, Raw and Proposed are the texts without a mask, where all was asked
	// for.
	Input    string `json:"input,omitempty"`
	Raw      string `json:"raw,omitempty"`
	Proposed string `json:"proposed,omitempty"`
}

// RevealedValue is one value.
type RevealedValue struct {
	Place string `json:"place" doc:"A JSON pointer (RFC 6901)."`
	// Value is the text of the JSON that stands there.
	Value string `json:"value" doc:"The text of the JSON that stands there."`
}

type revealInput struct {
	ID      string `path:"id"`
	Key     string `header:"Idempotency-Key" doc:"A repeat is refused: what was shown is not kept."`
	Body    RevealBody
	RawBody []byte
}

// postReveal records who sees which places, and shows them then.
func (s *server) postReveal(ctx context.Context, w access.Who, in *revealInput) (*answer, error) {
	r, v, err := s.request(ctx, w, in.ID, access.ApprovalsReveal)
	if err != nil {
		return nil, s.refused(ctx, w, in.ID, "reveal", err)
	}
	hidden := sight.Hidden(r)
	for _, place := range in.Body.Places {
		if !slices.ContainsFunc(hidden, func(h sight.Place) bool { return h.Pointer == place }) {
			return nil, fmt.Errorf("%w: %q is no masked place of the request", errUnread, place)
		}
	}
	return s.once(ctx, w, v, access.ApprovalsReveal, in.Key, in.RawBody, func(bool) (*answer, error) {
		return s.reveal(ctx, w, r, hidden, in.Body.Places)
	})
}

func (s *server) reveal(ctx context.Context, w access.Who, r ringi.ApprovalRequest, hidden []sight.Place, places []string) (*answer, error) {
	out := Revealed{Values: []RevealedValue{}}
	var shown []string
	for _, h := range hidden {
		if len(places) == 0 || slices.Contains(places, h.Pointer) {
			out.Values = append(out.Values, RevealedValue{h.Pointer, h.Text})
			shown = append(shown, h.Pointer)
		}
	}
	if len(places) == 0 {
		out.Input, out.Raw, out.Proposed = string(r.Call.Input), string(r.Call.Raw), string(r.Proposed)
	}
	if err := s.Directory.NoteReveal(ctx, w.Principal, r.ID, shown); err != nil {
		return nil, errors.Join(ringi.ErrNotRecorded, err)
	}
	a, err := asJSON(http.StatusOK, out)
	if err == nil {
		a.secret = true
	}
	return a, err
}
