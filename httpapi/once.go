package httpapi

import (
	"context"
	"errors"
	"net/http"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/access"
)

// once carries out a POST, once for an Idempotency-Key: a repeat gets the stored
// answer. Without a key it is carried out. do is told whether an earlier try
// began and did not end.
//
// An answer that refuses is not stored: nothing was done, and a repeat is tried
// anew. Where something may have been done the key stays taken: a repeat is
// carried out as one that may be the second, once the first is certainly over.
func (s *server) once(ctx context.Context, w access.Who, v seen, route access.Route, key string, body []byte,
	do func(again bool) (*answer, error)) (*answer, error) {
	if key == "" {
		return do(false)
	}
	r := requestOf(ctx)
	try, err := s.Directory.Begin(ctx, w, access.Call{Route: route, Owner: v.owner, Method: r.Method, Path: r.URL.EscapedPath(), Key: key, Body: body})
	if err != nil {
		return nil, recorded(err)
	}
	if a := try.Answer; a != nil {
		return &answer{status: repeated(a.Status), location: a.Location, replayed: true, body: a.Body}, nil
	}
	after := context.WithoutCancel(ctx)
	a, err := do(try.Again)
	if err != nil {
		switch unsure := problemRow(err).unsure; {
		case errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded): // not certainly over
		case unsure || try.Again:
			if doubt := try.Doubt(after); doubt != nil {
				s.Logger.Error("end try", "who", w, "error", doubt) // it ends by its age
			}
		default:
			err = errors.Join(err, try.Abandon(after))
		}
		return nil, err
	}
	if err := try.Finish(after, access.Answer{Status: a.status, Type: "application/json", Location: a.location, Body: a.body, Secret: a.secret, Run: v.run}); err != nil {
		s.Logger.Error("store answer", "who", w, "error", err) // it was done; a repeat is told that it is unclear
	}
	return a, nil
}

// repeated is a stored answer's status: what was made by the first try is no
// longer new.
func repeated(status int) int {
	if status == http.StatusCreated {
		return http.StatusOK
	}
	return status
}

// recorded says of an error of the directory that is no refusal that the key
// could not be recorded: then nothing is done.
func recorded(err error) error {
	if access.Status(err) == 0 {
		return errors.Join(ringi.ErrNotRecorded, err)
	}
	return err
}

func problemRow(err error) *row {
	if p := (*Problem)(nil); errors.As(err, &p) {
		for i := range table {
			if typePrefix+table[i].word == p.Type {
				return &table[i]
			}
		}
	}
	return wordOf(err)
}
