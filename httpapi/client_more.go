package httpapi

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// during says what an error is of, as the service itself says it.
func during(what string, err error) error {
	if err == nil || strings.HasPrefix(err.Error(), what) {
		return err
	}
	return fmt.Errorf("%s: %w", what, err)
}

// wordIn is a problem's word in docs/errors.md; empty for one of another kind.
func wordIn(p *Problem) string {
	word, ok := strings.CutPrefix(p.Type, typePrefix)
	if !ok {
		return ""
	}
	return word
}

// Me tells who the token is.
func (c *Client) Me(ctx context.Context) (Me, error) {
	var out Me
	err := c.get(ctx, "/v1/me", nil, &out)
	return out, during("read who the token is", err)
}

// LookAt says that the token's person has a request before him, for 30 seconds,
// and tells who else has.
func (c *Client) LookAt(ctx context.Context, requestID string) ([]Look, error) {
	var out Looking
	err := c.post(ctx, at("/v1/approvals/", requestID, "/presence"), nil, &out)
	return out.Looking, during("look at request "+requestID, err)
}

// Reveal shows masked values of a request: those at the places, or all, and the
// texts whole. The server records it first.
func (c *Client) Reveal(ctx context.Context, requestID string, places ...string) (Revealed, error) {
	var out Revealed
	err := c.send(ctx, message{method: http.MethodPost, path: at("/v1/approvals/", requestID, "/reveal"), body: RevealBody{places}, out: &out, once: true})
	return out, during("reveal request "+requestID, err)
}

// DecideBatch records up to [MaxBatch] decisions, each by itself; each item
// carries the ETag of its request.
func (c *Client) DecideBatch(ctx context.Context, items []BatchItem) ([]BatchResult, error) {
	var out BatchResults
	err := c.post(ctx, "/v1/approval-batches", BatchBody{items}, &out)
	return out.Results, during("decide batch", err)
}

// Tokens lists the tokens of an owner behind the token with the id after: empty
// means all that the caller may see, and the beginning. A limit of 0 means 100.
func (c *Client) Tokens(ctx context.Context, owner, after string, limit int) (Tokens, error) {
	v := url.Values{"limit": {strconv.Itoa(cmp.Or(limit, 100))}}
	set(v, "owner", owner)
	set(v, "after", after)
	var out Tokens
	err := c.get(ctx, "/v1/tokens", v, &out)
	return out, during("list tokens", err)
}

// MakeToken makes a token; its secret is in the answer and nowhere else.
func (c *Client) MakeToken(ctx context.Context, b TokenBody) (NewToken, error) {
	var out NewToken
	err := c.send(ctx, message{method: http.MethodPost, path: "/v1/tokens", body: b, out: &out, once: true})
	return out, during("make token", err)
}

// RevokeToken ends a token at once. Twice is no error.
func (c *Client) RevokeToken(ctx context.Context, id string) error {
	return during("revoke token", c.post(ctx, at("/v1/tokens/", id, "/revoke"), nil, &Done{}))
}

// Users lists users behind the user with the id after; empty begins. A limit of
// 0 means 100.
func (c *Client) Users(ctx context.Context, after string, limit int) (Users, error) {
	v := url.Values{"limit": {strconv.Itoa(cmp.Or(limit, 100))}}
	set(v, "after", after)
	var out Users
	err := c.get(ctx, "/v1/users", v, &out)
	return out, during("list users", err)
}

// AddUser adds a user.
func (c *Client) AddUser(ctx context.Context, b UserBody) (User, error) {
	var out User
	err := c.post(ctx, "/v1/users", b, &out)
	return out, during("add user", err)
}

// ChangeUser changes what a user may do; what is nil in the change stays.
func (c *Client) ChangeUser(ctx context.Context, id string, change UserChange) (User, error) {
	var out User
	err := c.post(ctx, at("/v1/users/", id, ""), change, &out)
	return out, during("change user", err)
}

// DisableUser ends a user's sessions and refuses his tokens.
func (c *Client) DisableUser(ctx context.Context, id string) (User, error) {
	var out User
	err := c.post(ctx, at("/v1/users/", id, "/disable"), nil, &out)
	return out, during("disable user", err)
}

// Teams lists all teams, with their members who are enabled.
func (c *Client) Teams(ctx context.Context) ([]Team, error) {
	var out Teams
	err := c.get(ctx, "/v1/teams", nil, &out)
	return out.Teams, during("list teams", err)
}

// AddTeam adds a team without members; who is in it stands with the user.
func (c *Client) AddTeam(ctx context.Context, b TeamBody) (Team, error) {
	var out Team
	err := c.post(ctx, "/v1/teams", b, &out)
	return out, during("add team", err)
}

// RemoveTeam removes a team; its people stay.
func (c *Client) RemoveTeam(ctx context.Context, id string) error {
	return during("remove team", c.post(ctx, at("/v1/teams/", id, "/remove"), nil, &Done{}))
}
