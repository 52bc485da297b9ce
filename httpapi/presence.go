package httpapi

import (
	"context"
	"net/http"
	"time"

	"github.com/ringi-dev/ringi/access"
	"github.com/ringi-dev/ringi/internal/sight"
)

// Looking is who else has an approval before him.
type Looking struct {
	Looking []Look `json:"looking"`
}

// Look is somebody who has an approval before him.
type Look struct {
	User  string    `json:"user"`
	Name  string    `json:"name,omitempty"`
	Until time.Time `json:"until"`
}

type presenceInput struct {
	ID   string `path:"id"`
	Key  string `header:"Idempotency-Key" doc:"Taken, and not needed: it may be sent again at any time."`
	Body *struct{}
}

// postPresence records a look, good for 30 seconds, and tells who decides of the
// others'.
func (s *server) postPresence(ctx context.Context, w access.Who, in *presenceInput) (*answer, error) {
	r, v, err := s.request(ctx, w, in.ID, access.ApprovalsRead)
	if err != nil {
		return nil, err
	}
	if err := s.Directory.Look(ctx, w, r.ID); err != nil {
		return nil, err
	}
	out := Looking{Looking: []Look{}}
	if v.sight < sight.Full {
		return asJSON(http.StatusOK, out) // deciders are not his to know
	}
	looks, err := s.Directory.Looking(ctx, w, r.ID)
	if err != nil {
		return nil, err
	}
	for _, l := range looks {
		out.Looking = append(out.Looking, Look{l.User, l.Name, l.Until})
	}
	return asJSON(http.StatusOK, out)
}
