package openai

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/responses"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/internal/vendor"
)

// Hosted is an MCP server that the vendor calls itself. The vendor asks before
// every call (require_approval: always, S-22), and what it asks is a call like
// any other here: offered, judged, put to a person, recorded. Approved, it "runs"
// by the vendor being told so in the next step; in every other case the vendor
// is told no, with the reason.
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
	sign    func(c ringi.ToolCall) string
}

func newHosted(servers []Hosted, key string) hosted {
	sum := sha256.Sum256([]byte("ringi hosted approval v1\x00" + key))
	return hosted{servers: slices.Clone(servers), sign: func(c ringi.ToolCall) string {
		mac := hmac.New(sha256.New, sum[:])
		for _, part := range []string{c.ModelID, c.Tool, string(c.Input)} {
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
	Approved string `json:"approved_for_the_vendor"`
}

// allow is the handler of hosted tools. It runs with a grant like any other; all
// that it does is to sign that this call may run.
func (h hosted) allow(_ context.Context, c ringi.ToolCall) (ringi.ToolResult, error) {
	if c.Raw != "" {
		c.Input = c.Raw // what the vendor holds
	}
	b, err := json.Marshal(approval{h.sign(c)})
	return ringi.ToolResult{Output: string(b)}, err
}

// hostedTools are the hosted tools that a step offers, by server.
type hostedTools map[string][]string

func (t hostedTools) server(name string) bool { return len(t[name]) > 0 }

// allowed is what a request lets the vendor do by itself: list the tools of
// these servers, and run the calls that were approved.
type allowed struct {
	tools    hostedTools
	approved map[string]bool
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

// approves reports whether a result says yes: whether it is what the handler
// signed for this call.
func (h hosted) approves(r *vendor.Result) bool {
	var a approval
	return json.Unmarshal([]byte(r.Result.Output), &a) == nil && r.Result.Error == "" && r.Result.Note == "" &&
		hmac.Equal([]byte(a.Approved), []byte(h.sign(ringi.ToolCall{ModelID: r.Call.ModelID, Tool: r.Call.Tool, Input: ringi.Input(r.Call.Input)})))
}

// answer writes yes or no to the vendor's own question.
func (h hosted) answer(r *vendor.Result) responses.ResponseInputItemUnionParam {
	yes := h.approves(r)
	item := responses.ResponseInputItemParamOfMcpApprovalResponse(r.Call.ModelID, yes)
	if !yes {
		item.OfMcpApprovalResponse.Reason = param.NewOpt(r.Result.Text())
	}
	return item
}
