package access

import (
	"context"
	"log/slog"

	"github.com/ringi-dev/ringi"
)

// How a principal was authenticated: [ringi.Principal.Auth], which is recorded
// and signed with a decision.
const (
	// AuthSession is a session that a provider's login began.
	AuthSession = "session"
	// AuthLink is a session that a one-time login link began. It cannot tell two
	// people apart who share a terminal: where four eyes are asked for, the
	// server must refuse to start with it.
	AuthLink = "link"
	// AuthToken begins the word for a token; its id follows: "token:tok_…".
	AuthToken = "token"
	// AuthOperator is who works on the database itself.
	AuthOperator = "operator"
)

// Who is an authenticated caller. The zero value is nobody and may do nothing.
// It is good for one request: rights are read anew with the next one, and by
// [Directory.Recheck] while a stream stays open.
type Who struct {
	// Principal is what the engine is told, and records. Of a person it is the
	// user, also behind a token; of an agent's token it is the client.
	Principal ringi.Principal
	Roles     []Role
	Space     string
	// Payloads says that an auditor may read payloads.
	Payloads bool
	// Clients are the ids of the agents' clients that belong to the person:
	// what they asked for is his own.
	Clients []string
	// Network is what the request came over; empty where there is none.
	Network Network

	// TokenID is empty without a token. Scopes and Agents are the token's: with
	// no scope it may do nothing, with no agent it is for none.
	TokenID string
	Scopes  []Scope
	Agents  []string
	// Owner is the user who answers for an agent's token; empty where nobody
	// does, and always for a person.
	Owner string

	previews map[Role]ringi.DataClass // Options.Previews

	session string // the hash under which the session is kept
	csrf    string
}

// Operator is who works on the database itself, on the machine: the command
// line over a store's file, and the server when it is set up. He has an admin's
// rights, decides nothing, and is recorded under id, such as "os:1000@host".
func Operator(id, space string) Who {
	return Who{Principal: ringi.Principal{ID: id, Kind: ringi.Person, Admin: true, Auth: AuthOperator},
		Roles: []Role{RoleAdmin}, Space: space, Payloads: true}
}

// CSRF is the token that every form of this session carries in the field
// [CSRFField]. It is empty without a session.
func (w Who) CSRF() string { return w.csrf }

// String returns the principal's id: a Who is never logged with its secrets.
func (w Who) String() string { return w.Principal.ID }

// GoString does what String does.
func (w Who) GoString() string { return "access.Who(" + w.Principal.ID + ")" }

// LogValue does what String does.
func (w Who) LogValue() slog.Value { return slog.StringValue(w.Principal.ID) }

type whoKey struct{}

// NewContext returns ctx with w in it.
func NewContext(ctx context.Context, w Who) context.Context {
	return context.WithValue(ctx, whoKey{}, w)
}

// FromContext returns the Who of ctx; the zero Who and false where there is
// none.
func FromContext(ctx context.Context) (Who, bool) {
	w, ok := ctx.Value(whoKey{}).(Who)
	return w, ok
}
