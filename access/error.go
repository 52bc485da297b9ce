package access

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/ringi-dev/ringi"
)

// The errors that a caller branches on. Nobody known is [ringi.ErrNoPrincipal],
// for every reason alike.
var (
	// ErrForbidden: he may not, and that is no secret.
	ErrForbidden = errors.New("forbidden")
	// ErrHidden wraps [ringi.ErrNotFound]: another's id and an unknown one.
	ErrHidden = fmt.Errorf("%w", ringi.ErrNotFound)
	// ErrInvalid: what was given cannot be taken (a bad name, a token without
	// scopes).
	ErrInvalid = errors.New("invalid")
	// ErrExists: the id, or the client's name, is taken.
	ErrExists = errors.New("exists already")
	// ErrLastAdmin: nobody would be left who manages.
	ErrLastAdmin = errors.New("the last admin stays")
	// ErrLink: the login link is used, ended or none at all.
	ErrLink = errors.New("login link is used or has ended")
	// ErrLogin: a provider's login was not begun in this browser, was ended
	// before, or what came of it does not hold.
	ErrLogin = errors.New("login is refused")
	// ErrProvider: the login provider does not answer, or not as one.
	ErrProvider = errors.New("login provider does not answer")
	// ErrNoRole: the provider knows him, and nothing here gives him a role.
	ErrNoRole = errors.New("no role is given here")
	// ErrCrossOrigin: the request comes from a page that is not ours.
	ErrCrossOrigin = errors.New("cross-origin request refused")
	// ErrHost: the host name is not served here.
	ErrHost = errors.New("host is not served here")

	// ErrInFlight: the first request with this idempotency key has not ended.
	ErrInFlight = errors.New("request with this idempotency key is in flight")
	// ErrReused: the idempotency key came with another body before.
	ErrReused = errors.New("idempotency key was used with another body")
	// ErrNotKept: the first request was answered, and its answer is not stored,
	// as it holds a secret or is too large.
	ErrNotKept = errors.New("request was answered already, and its answer is not kept")
)

// LimitError says that somebody asks too often.
type LimitError struct {
	// After is how long to wait.
	After time.Duration
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("too many requests: wait %s", e.After.Round(time.Second))
}

// Status returns the HTTP status of an error that this package returns, and 0
// for any other: a failure, such as a database that does not answer.
func Status(err error) int {
	var limit *LimitError
	if errors.As(err, &limit) {
		return http.StatusTooManyRequests
	}
	for _, row := range statuses {
		if errors.Is(err, row.err) {
			return row.status
		}
	}
	return 0
}

var statuses = []struct {
	err    error
	status int
}{
	{ringi.ErrNoPrincipal, http.StatusUnauthorized},
	{ErrForbidden, http.StatusForbidden},
	{ErrLogin, http.StatusForbidden},
	{ErrProvider, http.StatusBadGateway},
	{ErrNoRole, http.StatusForbidden},
	{ErrCrossOrigin, http.StatusForbidden},
	{ErrHidden, http.StatusNotFound},
	{ringi.ErrTooLarge, http.StatusRequestEntityTooLarge},
	{ErrInvalid, http.StatusBadRequest},
	{ErrExists, http.StatusConflict},
	{ErrLastAdmin, http.StatusConflict},
	{ErrLink, http.StatusForbidden},
	{ErrHost, http.StatusMisdirectedRequest},
	{ErrInFlight, http.StatusConflict},
	{ErrNotKept, http.StatusConflict},
	{ErrReused, http.StatusUnprocessableEntity},
}
