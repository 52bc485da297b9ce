package access

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/internal/sqltable"
)

// TokenKind says for whom a token speaks.
type TokenKind string

// The kinds of a token.
const (
	// AgentToken speaks for a client: an agent, or a loop from outside. It never
	// decides, never makes tokens, and never reads another client's things.
	AgentToken TokenKind = "agent"
	// PersonToken speaks for its owner, within its scopes.
	PersonToken TokenKind = "person"
)

// Token is a token without its secret.
type Token struct {
	ID   string
	Kind TokenKind
	// Name is for people, and for an agent's token the client: its principal is
	// [ClientID] of it. Several tokens may be of one client, so that a new one
	// takes over from an old one.
	Name string
	// Owner is the user whose token it is. An agent's token without one belongs
	// to nobody: four eyes cannot be met for what it asks.
	Owner string
	// Agents are those that it may be used for; [EveryAgent] is all.
	Agents []string
	// Scopes are what it is for.
	Scopes []Scope
	// MadeBy made it; GrantedBy is the admin who granted decide or manage.
	MadeBy, GrantedBy string
	CreatedAt, EndsAt time.Time
	// UsedAt is the last use, to about a minute; zero: never.
	UsedAt time.Time
	// RevokedAt is zero while it is good.
	RevokedAt time.Time
}

// NewToken is the wish for a token.
type NewToken struct {
	Kind TokenKind
	// Name: see [Token]. An agent's is a word.
	Name string
	// Owner is the user whose token it is; empty means who makes it, and for
	// [Operator] nobody (which only an agent's token can be of).
	Owner string
	// Unowned makes an agent's token that belongs to nobody; an admin's right.
	Unowned bool
	// Agents must be named for an agent's token; empty means [EveryAgent] for a
	// person's.
	Agents []string
	// Scopes must be named.
	Scopes []Scope
	// For is how long it lives; 0 means as long as allowed.
	For time.Duration
}

// MakeToken makes a token and returns it with its secret, which is shown now
// and never again.
//
// It asks for the right to [TokensMake] for the owner. Scopes decide and manage
// are granted by an admin who is logged in himself (not by a token), to a
// person's token only; a token that makes tokens gives no scope or agent that
// it does not have.
//
// Errors: [ErrForbidden], [ErrInvalid], [ErrHidden] where there is no such
// owner, [ErrExists] where the client's name is somebody else's.
func (d *Directory) MakeToken(ctx context.Context, by Who, n NewToken) (Token, string, error) {
	t, life, err := d.newToken(by, n)
	if err != nil {
		return Token{}, "", fmt.Errorf("make token: %w", err)
	}
	prefix, secret := newToken()
	err = d.change(ctx, func(tx *tx) error {
		now := sqltable.Time(tx.now)
		t.ID, t.CreatedAt, t.EndsAt = ringi.NewID("tok_", now), now, now.Add(life)
		if err := tx.checkOwner(t); err != nil {
			return err
		}
		client := ""
		if t.Kind == AgentToken {
			client = ClientID(t.Name)
			if err := tx.claimClient(client, t.Owner); err != nil {
				return err
			}
		}
		err := tx.exec(`INSERT INTO tokens (space, id, prefix, hash, kind, name, owner, client, agents, scopes, made_by, granted_by,
			created_at, ends_at, used_at, revoked_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, 0)`,
			d.o.Space, t.ID, prefix, hashed(tokenLabel, secret), string(t.Kind), t.Name, t.Owner, client,
			words(t.Agents), words(t.Scopes), t.MadeBy, t.GrantedBy, tx.now, t.EndsAt.UnixMicro())
		if err != nil {
			return notRecorded(err)
		}
		return tx.note(by, "token.made", t.ID, fmt.Sprintf("%s %q of %q; scopes %s; agents %s; until %s",
			t.Kind, t.Name, t.Owner, words(t.Scopes), words(t.Agents), t.EndsAt.Format(time.RFC3339)))
	})
	if err != nil {
		return Token{}, "", fmt.Errorf("make token: %w", err)
	}
	return t, secret, nil
}

// newToken checks a wish, and returns the token to be and how long it lives.
func (d *Directory) newToken(by Who, n NewToken) (Token, time.Duration, error) {
	if n.Owner == "" && !n.Unowned && by.Principal.Auth != AuthOperator {
		n.Owner = by.Principal.ID
	}
	owner := Other
	if n.Owner != "" && n.Owner == by.Principal.ID {
		owner = Own
	}
	if err := d.may(by, TokensMake, owner); err != nil {
		if errors.Is(err, ErrHidden) {
			err = ErrForbidden // whether there is such a user is none of his business
		}
		return Token{}, 0, err
	}
	if n.For == 0 {
		n.For = d.o.TokenAge
	}
	if n.Kind == PersonToken && len(n.Agents) == 0 {
		n.Agents = []string{EveryAgent}
	}
	if err := n.check(d.o.TokenAge); err != nil {
		return Token{}, 0, err
	}
	t := Token{Kind: n.Kind, Name: n.Name, Owner: n.Owner, MadeBy: by.Principal.ID,
		Agents: slices.Compact(slices.Sorted(slices.Values(n.Agents))), Scopes: slices.Compact(slices.Sorted(slices.Values(n.Scopes)))}
	return t, n.For, t.grant(by)
}

func (n NewToken) check(longest time.Duration) error {
	switch {
	case n.Kind != AgentToken && n.Kind != PersonToken:
		return fmt.Errorf("%w: unknown kind of token %q", ErrInvalid, n.Kind)
	case n.Kind == PersonToken && n.Owner == "":
		return fmt.Errorf("%w: a person's token has an owner", ErrInvalid)
	case n.Unowned && n.Owner != "":
		return fmt.Errorf("%w: a token that belongs to nobody names no owner", ErrInvalid)
	case len(n.Agents) == 0:
		return fmt.Errorf("%w: an agent's token names its agents", ErrInvalid)
	case len(n.Scopes) == 0:
		return fmt.Errorf("%w: a token without scopes may do nothing", ErrInvalid)
	case n.For < time.Second || n.For > longest:
		return fmt.Errorf("%w: a token lives between a second and %s", ErrInvalid, longest)
	}
	for _, s := range n.Scopes {
		if !slices.Contains(Scopes(), s) {
			return fmt.Errorf("%w: unknown scope %q", ErrInvalid, s)
		}
	}
	for _, a := range n.Agents {
		if a != EveryAgent {
			if err := checkWord("agent", a); err != nil {
				return err
			}
		}
	}
	if n.Kind == AgentToken {
		return checkWord("client", n.Name)
	}
	return checkText("name", n.Name)
}

// grant refuses what by cannot give.
func (t *Token) grant(by Who) error {
	for _, s := range t.Scopes {
		if by.TokenID != "" && !by.hasScope(s) {
			return fmt.Errorf("%w: a token cannot give scope %s, which it does not have", ErrForbidden, s)
		}
		if s != ScopeDecide && s != ScopeManage {
			continue
		}
		if t.Kind != PersonToken {
			return fmt.Errorf("%w: an agent's token never has scope %s", ErrInvalid, s)
		}
		if !by.Has(RoleAdmin) || by.TokenID != "" {
			return fmt.Errorf("%w: scope %s is granted by an admin who is logged in himself", ErrForbidden, s)
		}
		t.GrantedBy = by.Principal.ID
	}
	for _, a := range t.Agents {
		if !by.ForAgent(a) {
			return fmt.Errorf("%w: a token cannot give agent %q, which it is not for", ErrForbidden, a)
		}
	}
	return nil
}

// checkOwner refuses an owner who is not there, or disabled.
func (tx *tx) checkOwner(t Token) error {
	if t.Owner == "" {
		return nil
	}
	var disabled bool
	err := tx.row(`SELECT disabled FROM users WHERE space = ? AND id = ?`, tx.d.o.Space, t.Owner).Scan(&disabled)
	switch {
	case none(err):
		return fmt.Errorf("owner %q: %w", t.Owner, ErrHidden)
	case err != nil:
		return notRecorded(err)
	case disabled:
		return fmt.Errorf("%w: owner %q is disabled", ErrInvalid, t.Owner)
	}
	return nil
}

// claimClient takes a client's name for its owner. Names stay taken: what the
// client asked for stays the owner's.
func (tx *tx) claimClient(id, owner string) error {
	if err := tx.exec(`INSERT INTO clients (space, id, owner) VALUES (?, ?, ?) ON CONFLICT DO NOTHING`, tx.d.o.Space, id, owner); err != nil {
		return notRecorded(err)
	}
	var has string
	if err := tx.row(`SELECT owner FROM clients WHERE space = ? AND id = ?`, tx.d.o.Space, id).Scan(&has); err != nil {
		return notRecorded(err)
	}
	if has != owner {
		return fmt.Errorf("client %q of another owner %w", strings.TrimPrefix(id, "client:"), ErrExists)
	}
	return nil
}

const tokenColumns = `SELECT id, kind, name, owner, agents, scopes, made_by, granted_by, created_at, ends_at, used_at, revoked_at, hash FROM tokens `

func scanToken(scan func(...any) error) (t Token, hash string, err error) {
	var agents, scopes string
	var created, ends, used, revoked int64
	err = scan(&t.ID, &t.Kind, &t.Name, &t.Owner, &agents, &scopes, &t.MadeBy, &t.GrantedBy, &created, &ends, &used, &revoked, &hash)
	t.Agents, t.Scopes = split[string](agents), split[Scope](scopes)
	t.CreatedAt, t.EndsAt, t.UsedAt, t.RevokedAt = sqltable.Time(created), sqltable.Time(ends), sqltable.Time(used), sqltable.Time(revoked)
	return t, hash, err
}

// Tokens lists tokens by id, behind the id after; empty begins: those of one
// owner, or of all where owner is empty. A limit of 0 means 100; at most 1,000.
// It asks for the right to [TokensMake].
func (d *Directory) Tokens(ctx context.Context, by Who, owner, after string, limit int) ([]Token, error) {
	asks := Other
	switch owner {
	case "":
		asks = All
	case by.Principal.ID:
		asks = Own
	}
	if err := d.may(by, TokensMake, asks); err != nil {
		return nil, fmt.Errorf("list tokens: %w", err)
	}
	var out []Token
	err := d.list(ctx, func(rows *sql.Rows) error {
		t, _, err := scanToken(rows.Scan)
		out = append(out, t)
		return err
	}, tokenColumns+`WHERE space = ? AND (owner = ? OR ? = '') AND id > ? ORDER BY id LIMIT ?`, d.o.Space, owner, owner, after, bounded(limit))
	if err != nil {
		return nil, fmt.Errorf("list tokens: %w", err)
	}
	return out, nil
}

// RevokeToken ends a token at once. Twice is no error. It asks for the right to
// [TokensMake] on the token; another's and an unknown one are [ErrHidden].
func (d *Directory) RevokeToken(ctx context.Context, by Who, id string) error {
	err := d.change(ctx, func(tx *tx) error {
		t, _, err := scanToken(tx.row(tokenColumns+`WHERE space = ? AND id = ?`, d.o.Space, id).Scan)
		switch {
		case none(err):
			return d.may(by, TokensMake, 0)
		case err != nil:
			return notRecorded(err)
		}
		owner := Other
		if t.Owner != "" && t.Owner == by.Principal.ID {
			owner = Own
		}
		if err := d.may(by, TokensMake, owner); err != nil {
			return err
		}
		n, err := tx.changed(`UPDATE tokens SET revoked_at = ? WHERE space = ? AND id = ? AND revoked_at = 0`, tx.now, d.o.Space, id)
		if err != nil {
			return notRecorded(err)
		}
		if n == 0 {
			return nil
		}
		return tx.note(by, "token.revoked", id, "")
	})
	if err != nil {
		return fmt.Errorf("revoke token: %w", err)
	}
	return nil
}

// ByToken returns who a token speaks for. Every refusal (no token at all,
// unknown, ended, revoked, owner disabled) is [ringi.ErrNoPrincipal].
func (d *Directory) ByToken(ctx context.Context, secret string) (Who, error) {
	prefix, ok := tokenPrefix(secret)
	if !ok {
		return Who{}, fmt.Errorf("read token: %w", ringi.ErrNoPrincipal)
	}
	t, hash, err := scanToken(d.row(ctx, tokenColumns+`WHERE space = ? AND prefix = ?`, d.o.Space, prefix).Scan)
	if err != nil && !none(err) {
		return Who{}, fmt.Errorf("read token: %w", err)
	}
	// An unknown prefix takes the same way as a wrong secret.
	if !equal(hashed(tokenLabel, secret), hash) {
		return Who{}, fmt.Errorf("read token: %w", ringi.ErrNoPrincipal)
	}
	return d.speaker(ctx, t)
}

// speaker returns who speaks by a token that is known.
func (d *Directory) speaker(ctx context.Context, t Token) (Who, error) {
	now := d.now()
	switch {
	case !t.RevokedAt.IsZero():
		return Who{}, fmt.Errorf("read token: %w: the token is revoked", ringi.ErrNoPrincipal)
	case now >= t.EndsAt.UnixMicro():
		return Who{}, fmt.Errorf("read token: %w: the token has ended", ringi.ErrNoPrincipal)
	}
	var w Who
	if t.Owner != "" {
		var err error
		if w, err = d.enter(ctx, t.Owner, AuthToken+":"+t.ID); err != nil {
			return Who{}, fmt.Errorf("read token: %w", err)
		}
	}
	if t.Kind != PersonToken {
		w = Who{Principal: ringi.Principal{ID: ClientID(t.Name), Name: t.Name, Kind: ringi.ServiceAccount, Auth: AuthToken + ":" + t.ID, Owner: t.Owner},
			Roles: []Role{RoleAgent}, Space: d.o.Space, Owner: t.Owner, previews: d.o.Previews}
	}
	w.TokenID, w.Scopes, w.Agents = t.ID, t.Scopes, t.Agents
	w.Principal.Admin = w.Principal.Admin && w.hasScope(ScopeManage)
	d.seen.note(seenToken, t.ID, now)
	return w, nil
}
