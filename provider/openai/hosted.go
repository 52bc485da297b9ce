package openai

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/responses"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/internal/vendor"
)

// Hosted is an MCP server that the vendor calls itself. The vendor asks before
// every call (require_approval: always, S-22), and what it asks is a call like
// any other here: offered, judged, put to a person, recorded. Approved, it "runs"
// by the vendor being told so in the next step; in every other case the vendor
// is told no, with the reason. A yes goes out once. Where no answer comes, or the
// process ends before, nobody knows whether the call ran: the vendor is told no
// from then on, and the model reads why.
//
// A server's tools are those that are registered by [RegisterHosted] and that a
// run is offered: where it is offered none, the server is not in the request. No
// other tool that the vendor could run by itself is ever in one.
type Hosted struct {
	// Label names the server to the vendor and begins the names of its tools here:
	// tool "search" of "docs" is docs_search. [A-Za-z][A-Za-z0-9-]{0,31}.
	Label string
	// URL is the server's address.
	URL string
	// Authorization is sent to the vendor, for the server: a secret.
	Authorization string
	// Tools are the server's tools as the operator knows them. Their names are the
	// server's; Effect, DataClass, Group and the rest mean what they mean for any
	// remote tool. A tool that is not named cannot be called.
	Tools []ringi.Tool
}

var label = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9-]{0,31}$`)

func checkHosted(all []Hosted) error {
	seen := map[string]bool{}
	for _, h := range all {
		if !label.MatchString(h.Label) || seen[h.Label] {
			return fmt.Errorf("hosted server has a bad or repeated label %q", h.Label)
		}
		seen[h.Label] = true
		if !strings.HasPrefix(h.URL, "https://") {
			return fmt.Errorf("hosted server %q needs an https address", h.Label)
		}
	}
	return nil
}

// RegisterHosted registers the tools of o's hosted servers, as remote tools
// whose approval is required. Pass the same Options to [New]: what approves a
// call is signed with the key, so that a history which somebody made up approves
// nothing. Errors: *ringi.ToolError, and a fault in o.
func RegisterHosted(r *ringi.Registry, o *Options) error {
	if err := checkHosted(o.Hosted); err != nil {
		return fmt.Errorf("register hosted servers: %w", err)
	}
	_, key, _ := whereTo(o)
	if key == "" {
		return errors.New("register hosted servers: no key")
	}
	h := newHosted(o.Hosted, key)
	for _, s := range o.Hosted {
		for _, t := range s.Tools {
			t.Name = h.name(s.Label, t.Name)
			t.Remote = &ringi.Remote{Server: s.Label, Identity: "openai hosted " + s.URL, Approval: ringi.RemoteRequired}
			t.AllowEdit, t.AllowRespond = false, false // the vendor runs its own bytes, or nothing
			if len(t.InputRequired) > 0 {
				return &ringi.ToolError{Tool: t.Name, Err: errors.New("a person can supply nothing to a call that the vendor runs")}
			}
			if err := r.Add(t, h.allow); err != nil {
				return fmt.Errorf("register hosted server %s: %w", s.Label, err)
			}
		}
	}
	return nil
}

// hosted are the servers of a model.
type hosted struct {
	servers []Hosted
	sign    func(id string, c ringi.ToolCall) string
}

func newHosted(servers []Hosted, key string) hosted {
	sum := sha256.Sum256([]byte("ringi hosted approval v2\x00" + key))
	return hosted{servers: slices.Clone(servers), sign: func(id string, c ringi.ToolCall) string {
		mac := hmac.New(sha256.New, sum[:])
		for _, part := range []string{id, c.ModelID, c.Tool, string(c.Input)} {
			fmt.Fprintf(mac, "%d:%s", len(part), part)
		}
		return hex.EncodeToString(mac.Sum(nil))
	}}
}

// name is a hosted tool's name here.
func (h hosted) name(server, tool string) string { return server + "_" + tool }

// approval is what an approved call returns: the vendor runs it in the next
// step.
type approval struct {
	ID       string `json:"id"`
	Approved string `json:"approved_for_the_vendor"`
}

// allow is the handler of hosted tools. It runs with a grant like any other; all
// that it does is to sign that this call may run, once.
func (h hosted) allow(_ context.Context, c ringi.ToolCall) (ringi.ToolResult, error) {
	if c.Raw != "" {
		c.Input = c.Raw // what the vendor holds
	}
	id := rand.Text()
	b, err := json.Marshal(approval{id, h.sign(id, c)})
	if err == nil {
		unsent.put(id)
	}
	return ringi.ToolResult{Output: string(b)}, err
}

// hostedTools are the hosted tools that a step offers, by server.
type hostedTools map[string][]string

func (t hostedTools) server(name string) bool { return len(t[name]) > 0 }

// allowed is what a request lets the vendor do by itself: list the tools of
// these servers, and run the calls that it says yes to for the first time.
type allowed struct {
	tools    hostedTools
	approved map[string]ringi.ToolCall // by the id of the vendor's question
	sent     []string                  // the approvals that went out with it
}

// split takes the hosted tools out of an offer.
func (h hosted) split(tools []ringi.Tool) (own []ringi.Tool, asked hostedTools) {
	asked = hostedTools{}
	for _, t := range tools {
		server, name, ok := h.find(t.Name)
		if !ok || t.Remote == nil || t.Remote.Server != server {
			own = append(own, t)
			continue
		}
		asked[server] = append(asked[server], name)
	}
	return own, asked
}

func (h hosted) find(name string) (server, tool string, ok bool) {
	for _, s := range h.servers {
		if tool, ok := strings.CutPrefix(name, s.Label+"_"); ok {
			return s.Label, tool, true
		}
	}
	return "", "", false
}

// offer writes the servers whose tools are offered.
func (h hosted) offer(asked hostedTools) []responses.ToolUnionParam {
	var out []responses.ToolUnionParam
	for _, s := range h.servers {
		if !asked.server(s.Label) {
			continue
		}
		p := &responses.ToolMcpParam{ServerLabel: s.Label, ServerURL: param.NewOpt(s.URL),
			AllowedTools:    responses.ToolMcpAllowedToolsUnionParam{OfMcpAllowedTools: asked[s.Label]},
			RequireApproval: responses.ToolMcpRequireApprovalUnionParam{OfMcpToolApprovalSetting: param.NewOpt("always")}}
		if s.Authorization != "" {
			p.Authorization = param.NewOpt(s.Authorization)
		}
		out = append(out, responses.ToolUnionParam{OfMcp: p})
	}
	return out
}

// approved is the approval in a result; false where it is not one that the
// handler signed for this call.
func (h hosted) approved(r *vendor.Result) (id string, ok bool) {
	var a approval
	if json.Unmarshal([]byte(r.Result.Output), &a) != nil || r.Result.Error != "" || r.Result.Note != "" {
		return "", false
	}
	return a.ID, hmac.Equal([]byte(a.Approved), []byte(h.sign(a.ID, asCall(&r.Call))))
}

func asCall(c *vendor.Call) ringi.ToolCall {
	return ringi.ToolCall{ModelID: c.ModelID, Tool: c.Tool, Input: ringi.Input(c.Input)}
}

// said is what the model reads where an approval can say yes no more.
const said = "The approval was told to the vendor before, and no answer came, or the process that held it has ended. " +
	"Whether the call ran is not known. It is not run again: make a new call where it is still needed."

// answer writes yes or no to the vendor's own question. A yes goes out once:
// whoever gets it may run the call, whether its answer arrives or not. Behind the
// vendor's own record of the call, ran, it is history.
func (h hosted) answer(r *vendor.Result, fresh bool, ran map[string]bool, to *allowed) responses.ResponseInputItemUnionParam {
	id, yes := h.approved(r)
	why := r.Result.Text()
	switch {
	case !yes:
	case !fresh:
		yes, why = ran[r.Call.ModelID], said
	case unsent.take(id):
		to.sent = append(to.sent, id)
		to.approved[r.Call.ModelID] = asCall(&r.Call)
	default:
		yes, why = false, said
	}
	item := responses.ResponseInputItemParamOfMcpApprovalResponse(r.Call.ModelID, yes)
	if !yes {
		item.OfMcpApprovalResponse.Reason = param.NewOpt(why)
	}
	return item
}

// runs takes a call that the vendor ran, and says what is wrong with it: one that
// nobody approved, other bytes than those, or a second time.
func (a *allowed) runs(it *item, h hosted) error {
	c, ok := a.approved[it.Approval]
	if !ok {
		return fmt.Errorf("the vendor ran tool %q of server %q, and asked nobody", it.Name, it.Server)
	}
	delete(a.approved, it.Approval)
	if h.name(it.Server, it.Name) != c.Tool || !sameJSON(it.Arguments, string(c.Input)) {
		return fmt.Errorf("the vendor ran tool %q of server %q with other bytes than it asked for", it.Name, it.Server)
	}
	return nil
}

// sameJSON compares but for white space.
func sameJSON(a, b string) bool {
	var x, y bytes.Buffer
	return a == b || json.Compact(&x, []byte(a)) == nil && json.Compact(&y, []byte(b)) == nil && bytes.Equal(x.Bytes(), y.Bytes())
}

// unsent are the approvals that no request has carried yet. They are this
// process's alone: after its end nobody can tell whether one went out, and then
// the vendor is told no.
var unsent approvals

type approvals struct {
	mu  sync.Mutex
	ids map[string]bool
}

func (a *approvals) put(ids ...string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ids == nil {
		a.ids = map[string]bool{}
	}
	for _, id := range ids {
		a.ids[id] = true
	}
}

// take reports whether it was there, and takes it away.
func (a *approvals) take(id string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	is := a.ids[id]
	delete(a.ids, id)
	return is
}

// untaken reports whether the vendor surely took nothing of a request: it was
// not reached, or refused the request as such.
func untaken(err error) bool {
	if dial, ok := errors.AsType[*net.OpError](err); ok && dial.Op == "dial" {
		return true
	}
	e, ok := ringi.ModelErrorOf(err)
	return ok && e.Status >= 400 && e.Status < 500 && e.Status != http.StatusRequestTimeout
}
