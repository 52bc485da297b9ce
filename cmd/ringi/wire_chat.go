package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/access"
	"github.com/ringi-dev/ringi/agui"
	"github.com/ringi-dev/ringi/aisdk"
	"github.com/ringi-dev/ringi/aisdk/identity"
)

// mountChat serves every agent to pages with useChat, and to clients of AG-UI.
func (s *server) mountChat(mux *http.ServeMux, auth *access.Authenticator, guard func(http.Handler) http.Handler) error {
	c := s.config.Chat
	if c.Serve != "on" && c.AGUI != "on" {
		return nil
	}
	var fromToken func(*http.Request) (ringi.Principal, error)
	may := mayDecide(ownApprovers(s.people.Directory))
	if c.Identity.Issuer != "" {
		var err error
		if fromToken, err = identity.New(identity.Options{Issuer: c.Identity.Issuer, JWKS: c.Identity.JWKS, Audience: c.Identity.Audience, Teams: c.Identity.Teams}); err != nil {
			return fmt.Errorf("make chat: %w", err)
		}
		fromToken, may = notDisabled(s.people.Directory, fromToken), named(s.people.Directory, s.config.Login.Previews != nil)
	}
	mount := func(at string, h http.Handler) {
		h = guard(http.StripPrefix(at, h))
		if c.Identity.Issuer == "" {
			h = withOwn(auth, c.Origins, h)
		}
		mux.Handle(at, h)
		mux.Handle(at+"/", h)
	}
	for _, a := range s.agents {
		who := fromToken
		if who == nil {
			who = ownUsers(s.people.Directory, a.config.Name)
		}
		if c.Serve == "on" {
			chat, err := aisdk.New(s.chatOptions(a.config.Name, who, may))
			if err != nil {
				return fmt.Errorf("make chat of %s: %w", a.config.Name, err)
			}
			mount("/v1/chat/"+a.config.Name, chat)
		}
		if c.AGUI == "on" {
			h, err := agui.New(s.aguiOptions(a.config.Name, who, may))
			if err != nil {
				return fmt.Errorf("make agui of %s: %w", a.config.Name, err)
			}
			mount("/v1/agui/"+a.config.Name, h)
		}
	}
	return nil
}

func (s *server) chatOptions(agent string, who func(*http.Request) (ringi.Principal, error), may mayDecide) aisdk.Options {
	c := s.config.Chat
	return aisdk.Options{
		Service: s.engine, Agent: agent, Who: who, MayDecide: may, Feed: s.feed, Origins: c.Origins, Link: s.approvalLink(),
		Open: c.Show == "all", WithdrawOpen: c.NewMessage == "withdraw", Logger: s.log, Done: s.stopping.Done(),
	}
}

func (s *server) aguiOptions(agent string, who func(*http.Request) (ringi.Principal, error), may mayDecide) agui.Options {
	c := s.config.Chat
	return agui.Options{
		Service: s.engine, Agent: agent, Who: who, MayDecide: may, Feed: s.feed, Origins: c.Origins, Link: s.approvalLink(),
		Open: c.Show == "all", WithdrawOpen: c.NewMessage == "withdraw", Logger: s.log, Done: s.stopping.Done(),
	}
}

// mayDecide narrows who may decide in a chat.
type mayDecide func(context.Context, ringi.Principal, ringi.ApprovalRequest) bool

// approvalLink is where the inbox shows a request; nil where nobody knows its
// address.
func (s *server) approvalLink() func(id string) string {
	if s.config.public == nil {
		return nil
	}
	return func(id string) string { return s.config.public.JoinPath("a", id).String() }
}

// withOwn puts who a request is from, by this server's own logins and tokens,
// into its context. A page that may chat may do so with its user's login.
func withOwn(auth *access.Authenticator, origins []string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if who, err := auth.FromPage(r, origins); err == nil {
			r = r.WithContext(access.NewContext(r.Context(), who))
		}
		next.ServeHTTP(w, r)
	})
}

// ownUsers are the people of this server who may start runs of an agent, as it
// knows them now: an open stream asks again.
func ownUsers(people *access.Directory, agent string) func(*http.Request) (ringi.Principal, error) {
	return func(r *http.Request) (ringi.Principal, error) {
		who, ok := access.FromContext(r.Context())
		if !ok {
			return ringi.Principal{}, ringi.ErrNoPrincipal
		}
		who, err := people.Recheck(r.Context(), who)
		if err != nil {
			return ringi.Principal{}, err
		}
		mine := who.OwnerOf(access.Thing{Space: who.Space, Agent: agent, By: []string{who.Principal.ID}})
		return who.Principal, access.May(who, access.RunsStart, mine)
	}
}

// ownApprovers are the people of this server who decide, as it knows them now.
func ownApprovers(people *access.Directory) func(context.Context, ringi.Principal, ringi.ApprovalRequest) bool {
	return func(ctx context.Context, by ringi.Principal, r ringi.ApprovalRequest) bool {
		who, ok := access.FromContext(ctx)
		if !ok {
			return false
		}
		who, err := people.Recheck(ctx, who)
		return err == nil && who.Principal.ID == by.ID && access.May(who, access.ApprovalsDecide, access.Asked) == nil &&
			(!previewed(r) || who.SeesPreview(r.Tool.PreviewData()))
	}
}

// notDisabled refuses the token of somebody whom this server knows and has
// disabled: what another site says of him does not undo that.
func notDisabled(people *access.Directory, who func(*http.Request) (ringi.Principal, error)) func(*http.Request) (ringi.Principal, error) {
	return func(r *http.Request) (ringi.Principal, error) {
		by, err := who(r)
		if err != nil {
			return by, err
		}
		u, err := people.User(r.Context(), by.ID)
		switch {
		case errors.Is(err, access.ErrHidden):
			return by, nil // it knows nothing of him
		case err != nil:
			return ringi.Principal{}, err
		case u.Disabled:
			return ringi.Principal{}, fmt.Errorf("%w: the user is disabled", ringi.ErrNoPrincipal)
		}
		return by, nil
	}
}

// named are those whom a request names: who comes with another site's token
// decides nothing that is merely open to all. Where four eyes are asked for he
// must be one whom this server knows too: nobody else's two names can be joined.
func named(people *access.Directory, ceilings bool) mayDecide {
	return func(ctx context.Context, by ringi.Principal, r ringi.ApprovalRequest) bool {
		if ceilings && previewed(r) {
			return false // which previews another site's user is shown nobody has said (S-17)
		}
		if r.FourEyes {
			if _, err := people.User(ctx, by.ID); err != nil {
				return false
			}
		}
		return slices.Contains(r.Deciders.People, by.ID) ||
			slices.ContainsFunc(r.Deciders.Teams, func(t string) bool { return slices.Contains(by.Teams, t) })
	}
}

// previewed reports whether a request shows a preview, or why there is none.
func previewed(r ringi.ApprovalRequest) bool { return r.Preview != nil || r.PreviewError != "" }
