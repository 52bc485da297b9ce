package ringi

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// foreignPrefix begins the name of every foreign tool. No registered tool's
// name has a colon.
const foreignPrefix = "ext:"

var foreignClient = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// ForeignName is how a tool that nobody registered is called, where an agent's
// client from outside asks for it: "ext:client/tool". It is never the name of a
// registered tool, so that nothing of one (template, preview, policy) is lent
// to it (S-11).
func ForeignName(client, tool string) string { return foreignPrefix + client + "/" + tool }

// Foreign takes the name of a foreign tool apart; ok is false for any other
// name. A client is 1 to 64 letters, digits, dots, underscores and hyphens; the
// tool is what a registered one may be called.
func Foreign(name string) (client, tool string, ok bool) {
	rest, ok := strings.CutPrefix(name, foreignPrefix)
	if !ok {
		return "", "", false
	}
	client, tool, ok = strings.Cut(rest, "/")
	if !ok || !foreignClient.MatchString(client) || !validToolName(tool) {
		return "", "", false
	}
	return client, tool, true
}

// foreignTool is all that is known of a foreign tool. It follows from the name
// alone: every process, today and after a restart, knows the same.
func foreignTool(name string) Tool {
	return Tool{Name: name, Description: "A client's own tool: nobody registered it here, and what it does is the client's word.",
		Effect: NonIdempotentWrite, DataClass: SecretAdjacent, RequiresApproval: true, External: true, InputSchema: slices.Clone(anyObject)}
}

var foreignSchemas = sync.OnceValue(func() schemas {
	s, err := compileSchemas(Tool{InputSchema: anyObject})
	if err != nil {
		panic(err) // a constant
	}
	return s
})

// foreignEntry is what a registry says of a foreign tool; nil for a name that
// is none.
func foreignEntry(name string) *entry {
	if _, _, ok := Foreign(name); !ok {
		return nil
	}
	e := &entry{tool: foreignTool(name), schemas: foreignSchemas()}
	e.offered = e.tool
	var err error
	if e.digest, err = e.tool.Digest(); err != nil {
		return nil
	}
	if e.definition, err = json.Marshal(e.tool); err != nil {
		return nil
	}
	return e
}

// Claim is what a client from outside says of a call. Nothing of it is checked,
// and every page says so. It is part of what a request's digest fixes.
type Claim struct {
	// Reason is why the call is wanted, at most 8 KiB.
	Reason string `json:"reason,omitempty"`
	// Preview is what the call would do, at most 64 KiB.
	Preview string `json:"preview,omitempty"`
	// OnBehalfOf is whom the client acts for, at most 256 bytes. It makes nobody
	// an initiator.
	OnBehalfOf string `json:"on_behalf_of,omitempty"`
}
