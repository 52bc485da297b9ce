package ringi

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// Effect says what running a tool does to the world. It is a property of the
// tool's code, never of configuration.
//
// The zero value is [Undeclared]: judged as a read (tools run by default) and
// run as a non-idempotent write (in order, never repeated after a crash).
type Effect string

// The effects.
const (
	Undeclared         Effect = ""
	ReadOnly           Effect = "read_only"
	IdempotentWrite    Effect = "idempotent_write"
	NonIdempotentWrite Effect = "non_idempotent_write"
)

// Known reports whether e is one of the four effects.
func (e Effect) Known() bool {
	switch e {
	case Undeclared, ReadOnly, IdempotentWrite, NonIdempotentWrite:
		return true
	}
	return false
}

// Writes reports whether a declared effect is a write. An undeclared effect is
// judged as a read, so it reports false.
func (e Effect) Writes() bool { return e == IdempotentWrite || e == NonIdempotentWrite }

// Repeatable reports whether a call may be run again after a crash that left
// its outcome open: reads and idempotent writes, with the same key and bytes.
func (e Effect) Repeatable() bool { return e == ReadOnly || e == IdempotentWrite }

// Stricter returns the one of the two that forbids more: what counts after a
// crash is the stricter of the effect recorded at the start and today's.
func (e Effect) Stricter(other Effect) Effect {
	if e.strictness() >= other.strictness() {
		return e
	}
	return other
}

func (e Effect) strictness() int {
	switch e {
	case ReadOnly:
		return 0
	case IdempotentWrite:
		return 1
	case NonIdempotentWrite:
		return 3
	}
	return 2 // undeclared, and anything unknown
}

// DataClass says how sensitive the data of a tool is. The zero value is
// undeclared; where a zone is declared it counts as [SecretAdjacent].
type DataClass string

// The data classes, from least to most sensitive.
const (
	PublicContent         DataClass = "public_content"
	EditorContent         DataClass = "editor_content"
	SourceCode            DataClass = "source_code"
	InternalConfiguration DataClass = "internal_configuration"
	SystemDiagnostics     DataClass = "system_diagnostics"
	SecretAdjacent        DataClass = "secret_adjacent"
)

// Rank orders data classes: 0 for [PublicContent] up to 5 for
// [SecretAdjacent]. An undeclared or unknown class ranks as [SecretAdjacent].
func (c DataClass) Rank() int {
	switch c {
	case PublicContent:
		return 0
	case EditorContent:
		return 1
	case SourceCode:
		return 2
	case InternalConfiguration:
		return 3
	case SystemDiagnostics:
		return 4
	}
	return 5
}

// Known reports whether c is undeclared or one of the six classes.
func (c DataClass) Known() bool {
	return c == "" || c == SecretAdjacent || c.Rank() < 5
}

// TrustZone says where a model runs, and so which data it may read. The zero
// value is undeclared: a library run without a zone has no ceiling.
type TrustZone string

// The trust zones, from most to least trusted.
const (
	ZoneLocal          TrustZone = "local"
	ZonePrivateHosted  TrustZone = "private_hosted"
	ZoneExternalEU     TrustZone = "external_eu"
	ZoneExternalGlobal TrustZone = "external_global"
)

// Known reports whether z is one of the four zones.
func (z TrustZone) Known() bool {
	_, ok := z.Ceiling()
	return ok
}

// Ceiling returns the most sensitive class that a model in the zone may read.
// It reports false for an undeclared or unknown zone.
func (z TrustZone) Ceiling() (DataClass, bool) {
	switch z {
	case ZoneLocal:
		return SecretAdjacent, true
	case ZonePrivateHosted:
		return SystemDiagnostics, true
	case ZoneExternalEU:
		return InternalConfiguration, true
	case ZoneExternalGlobal:
		return EditorContent, true
	}
	return "", false
}

// RemoteApproval is an operator's word on a remote tool, since its own
// server's hints are never believed. The zero value means that nobody judged.
type RemoteApproval string

// What an operator may declare of a remote tool.
const (
	RemoteUnjudged    RemoteApproval = ""
	RemoteRequired    RemoteApproval = "required"
	RemoteNotRequired RemoteApproval = "not_required"
)

// Remote marks a tool that another server runs.
type Remote struct {
	// Server names the server as the operator knows it.
	Server string `json:"server"`
	// Identity is its transport identity: URL and key, or command, arguments
	// and file digest. It is part of the definition digest.
	Identity string `json:"identity,omitempty"`
	// Annotations are the server's own hints. They are part of the definition
	// digest and are never used to judge.
	Annotations json.RawMessage `json:"annotations,omitempty"`
	// Approval is the operator's declaration; the zero value requires one.
	Approval RemoteApproval `json:"approval,omitempty"`
}

// Tool is plain data: what a model is told of it, and what policy, digests and
// pages need to know. Handler and hooks are values of their own that only a
// [Registry] joins to it.
type Tool struct {
	// Name matches [A-Za-z][A-Za-z0-9_-]{0,63}; unique whatever the letter case.
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	// InputSchema is a JSON Schema (2020-12) of an object. [AddTool] infers it
	// from the type where it is empty.
	InputSchema json.RawMessage `json:"input_schema,omitempty"`
	// OutputSchema is a JSON Schema of the result; optional.
	OutputSchema json.RawMessage `json:"output_schema,omitempty"`
	Effect       Effect          `json:"effect,omitempty"`
	// RequiresApproval is the approval marker: the tool always asks, whatever
	// its effect, unless rungs 1 to 3 of the approval ladder say otherwise.
	RequiresApproval bool `json:"requires_approval,omitempty"`
	// NeedsApproval is the legacy form of the marker (rung 4 of the ladder). As
	// a function it lives in [ToolHooks].
	NeedsApproval bool `json:"needs_approval,omitempty"`
	// AdminOnly offers the tool to admins alone, and only they may decide it.
	AdminOnly bool `json:"admin_only,omitempty"`
	// Group is the tool's group; the zero value belongs to every run.
	Group     string    `json:"group,omitempty"`
	DataClass DataClass `json:"data_class,omitempty"`
	// PreviewClass is the class of what the Preview hook shows, where it is not
	// the tool's: a preview may quote more than the call returns. The zero value
	// is DataClass.
	PreviewClass DataClass `json:"preview_class,omitempty"`
	// InputRequired is a closed JSON Schema of what a person supplies before
	// the tool runs. The model is offered InputSchema without those keys, and
	// learns which of them a person supplied, never the values: they may be
	// secrets. A key marked "x-tell-model": true is told with its value, where
	// that is short; the mark on a key that is also marked as a secret
	// (writeOnly, format password, x-sensitive) is refused.
	InputRequired json.RawMessage `json:"input_required,omitempty"`
	// AllowEdit and AllowRespond let a decider change the input, or answer in
	// the tool's place. Both are off in the zero value.
	AllowEdit    bool `json:"allow_edit,omitempty"`
	AllowRespond bool `json:"allow_respond,omitempty"`
	// Deciders names who may decide this tool's requests; the zero value
	// leaves it to the engine's configuration.
	Deciders Deciders `json:"deciders,omitzero"`
	// Timeout bounds one call; the zero value takes the run's limit.
	Timeout time.Duration `json:"timeout,omitempty"`
	// Remote is set for a tool that another server runs.
	Remote *Remote `json:"remote,omitempty"`
	// External is set by [Registry.AddExternal]: somebody else runs the tool.
	External bool `json:"external,omitempty"`
}

// PreviewData is the class of the tool's previews; undeclared ranks as the most
// sensitive.
func (t Tool) PreviewData() DataClass {
	if t.PreviewClass != "" {
		return t.PreviewClass
	}
	return t.DataClass
}

// RunEffect is how the tool is run: a remote tool, and one whose effect is
// undeclared or unknown, count as non-idempotent writes. An external tool's
// effect is the word of the program that registered it.
func (t Tool) RunEffect() Effect {
	if t.Remote != nil {
		return NonIdempotentWrite
	}
	switch t.Effect {
	case ReadOnly, IdempotentWrite:
		return t.Effect
	}
	return NonIdempotentWrite
}

// Deciders names who may decide a request. The zero value names nobody in
// particular: any authenticated person may decide.
type Deciders struct {
	People []string `json:"people,omitempty"` // principal ids
	Teams  []string `json:"teams,omitempty"`
}

// IsZero reports whether nobody in particular is named.
func (d Deciders) IsZero() bool { return len(d.People) == 0 && len(d.Teams) == 0 }

// ToolHandler runs a tool. It gets the exact approved bytes; what it returns
// is what the model reads. An error that it returns in time is the tool's
// answer; wrap it with [NotDone] where surely nothing happened.
type ToolHandler func(ctx context.Context, call ToolCall) (ToolResult, error)

// Preview shows what a call would do, before anybody allowed it.
type Preview struct {
	// Text is shown to the decider, escaped; at most 64 KiB.
	Text string `json:"text"`
	// Format says how a page may draw it: "text" (default), "diff", "mail".
	Format string `json:"format,omitempty"`
	// Precondition is a version, etag or content digest of what was read. It is
	// part of the request's digest, and the Check hook compares it right before
	// the start.
	Precondition string `json:"precondition,omitempty"`
}

// ToolHooks are optional functions beside a handler. Each runs recovered, with
// a time limit of its own; none of them may have effects.
type ToolHooks struct {
	// Preview reads only: it runs before anybody allowed the call. 5 s, 64 KiB.
	// Where it fails the page says that there is no preview.
	Preview func(ctx context.Context, call ToolCall) (Preview, error)
	// NeedsApproval is rung 4 of the ladder as a function of the input. 2 s.
	// An error or a panic denies.
	NeedsApproval func(ctx context.Context, call ToolCall) (bool, error)
	// Lookup finds the result of a call that a crash left open, by its
	// idempotency key. Found means done; not found is still unknown.
	Lookup func(ctx context.Context, key string) (ToolResult, bool, error)
	// Check compares the preview's precondition with the world right before
	// the start. An error makes the request stale and the call is asked again.
	Check func(ctx context.Context, call ToolCall, precondition string) error
}

// DecodeTool reads a definition as a store keeps it.
func DecodeTool(b []byte) (Tool, error) {
	var t Tool
	if err := json.Unmarshal(b, &t); err != nil {
		return Tool{}, fmt.Errorf("decode tool definition: %w", err)
	}
	return t, nil
}
