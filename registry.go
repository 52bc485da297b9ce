package ringi

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// Registry joins tools to their handlers and hooks: nothing else does. Tools
// are added and never changed or removed. It is safe for concurrent use, and
// reading takes no lock. The zero value is what [NewRegistry] makes.
//
// A [Tool] that it returns is a copy whose schemas are shared with it: do not
// write into them.
type Registry struct {
	strict bool
	adding sync.Mutex
	state  atomic.Pointer[registered]
}

// registered is all tools at one moment. It is replaced and never changed.
type registered struct {
	list   []*entry
	byName map[string]*entry
	folded map[string]string // lower-case name to name
}

// entry is one tool with everything that is derived from it once.
type entry struct {
	tool       Tool
	offered    Tool // as the model sees it
	digest     string
	definition []byte
	schemas    schemas
	hooks      ToolHooks
	handler    ToolHandler // nil for an external tool
	decode     decodeFunc  // nil for a raw tool
}

// NewRegistry makes an empty registry that takes tools of undeclared effect:
// they are judged as reads and run as non-idempotent writes, and
// [Registry.Undeclared] names them for the start-up log.
func NewRegistry() *Registry { return &Registry{} }

// NewStrictRegistry makes an empty registry that refuses a local tool whose
// effect is undeclared.
func NewStrictRegistry() *Registry { return &Registry{strict: true} }

// Add registers a tool by a raw handler, which gets the exact bytes of the
// input. At most one ToolHooks may be given. An empty InputSchema, or `{}`,
// takes any object.
//
// Every error is a [ToolError] that names the tool and the fault; the registry
// is then as it was.
func (r *Registry) Add(t Tool, h ToolHandler, hooks ...ToolHooks) error {
	if h == nil {
		return &ToolError{Tool: t.Name, Err: errors.New("handler is nil")}
	}
	return r.add(t, entry{handler: h}, hooks)
}

// AddExternal registers a tool that somebody else runs: it has no handler, and
// a call of it waits for its result. Errors are as for [Registry.Add].
func (r *Registry) AddExternal(t Tool) error {
	t.External = true
	return r.add(t, entry{}, nil)
}

func (r *Registry) add(t Tool, e entry, hooks []ToolHooks) error {
	if err := r.addChecked(t, e, hooks); err != nil {
		return &ToolError{Tool: t.Name, Err: err}
	}
	return nil
}

func (r *Registry) addChecked(t Tool, e entry, hooks []ToolHooks) error {
	if r == nil {
		return errors.New("registry is nil")
	}
	switch len(hooks) {
	case 0:
	case 1:
		e.hooks = hooks[0]
	default:
		return fmt.Errorf("%d sets of hooks given, at most one is taken", len(hooks))
	}
	if e.handler != nil && t.External {
		return errors.New("an external tool has no handler: use AddExternal")
	}
	if err := e.define(t, r.strict); err != nil {
		return err
	}
	return r.insert(&e)
}

func (r *Registry) insert(e *entry) error {
	r.adding.Lock()
	defer r.adding.Unlock()
	old := r.load()
	name := e.tool.Name
	folded := strings.ToLower(name)
	if other, ok := old.folded[folded]; ok {
		if other == name {
			return errors.New("the name is registered already")
		}
		return fmt.Errorf("the name differs from the registered %q only by letter case", other)
	}
	next := &registered{list: append(slices.Clip(old.list), e), byName: maps.Clone(old.byName), folded: maps.Clone(old.folded)}
	if next.byName == nil {
		next.byName, next.folded = map[string]*entry{}, map[string]string{}
	}
	next.byName[name] = e
	next.folded[folded] = name
	r.state.Store(next)
	return nil
}

var nothingRegistered registered

func (r *Registry) load() *registered {
	if r == nil {
		return &nothingRegistered
	}
	if s := r.state.Load(); s != nil {
		return s
	}
	return &nothingRegistered
}

// entry returns nil for a name that is not registered. Names are exact: a
// letter of another case or another alphabet is another name.
// A foreign name is nobody's registration, and known all the same.
func (r *Registry) entry(name string) *entry {
	if e := r.load().byName[name]; e != nil {
		return e
	}
	return foreignEntry(name)
}

// Tools returns all tools in the order of their registration.
func (r *Registry) Tools() []Tool {
	list := r.load().list
	tools := make([]Tool, len(list))
	for i, e := range list {
		tools[i] = e.tool.own()
	}
	return tools
}

// Tool returns the tool of exactly this name.
func (r *Registry) Tool(name string) (Tool, bool) {
	if e := r.entry(name); e != nil {
		return e.tool.own(), true
	}
	return Tool{}, false
}

// RunEffect returns how a tool is run, see [Tool.RunEffect]; false for a name
// that is not registered.
func (r *Registry) RunEffect(name string) (Effect, bool) {
	if e := r.entry(name); e != nil {
		return e.tool.RunEffect(), true
	}
	return "", false
}

// DataClass returns the declared data class of a tool; empty for an undeclared
// one, and for a name that is not registered.
func (r *Registry) DataClass(name string) DataClass {
	if e := r.entry(name); e != nil {
		return e.tool.DataClass
	}
	return ""
}

// Len returns the number of tools.
func (r *Registry) Len() int { return len(r.load().list) }

// Offered returns the tool of exactly this name as a model is shown it: its
// InputSchema is without the keys that a person supplies.
func (r *Registry) Offered(name string) (Tool, bool) {
	if e := r.entry(name); e != nil {
		return e.offered.own(), true
	}
	return Tool{}, false
}

// Digest returns the definition digest of a tool, see [Tool.Digest]; empty for
// a name that is not registered.
func (r *Registry) Digest(name string) string {
	if e := r.entry(name); e != nil {
		return e.digest
	}
	return ""
}

// Definition returns the JSON of a tool, which stores keep under its digest,
// so that a process without the registry can show and decide. It is nil for a
// name that is not registered. The bytes are shared: do not write into them.
func (r *Registry) Definition(name string) []byte {
	if e := r.entry(name); e != nil {
		return e.definition
	}
	return nil
}

// Undeclared names the local tools without a declared effect, for the start-up
// log: they are judged as reads and run as non-idempotent writes.
func (r *Registry) Undeclared() []string {
	var names []string
	for _, e := range r.load().list {
		if e.tool.Effect == Undeclared && e.tool.Remote == nil {
			names = append(names, e.tool.Name)
		}
	}
	return names
}

// Hooks returns the hooks of a tool; the zero value where it has none.
func (r *Registry) Hooks(name string) ToolHooks {
	if e := r.entry(name); e != nil {
		return e.hooks
	}
	return ToolHooks{}
}

// Handler returns what runs a tool; false for an external tool and for a name
// that is not registered. Only the engine's execute.go may ask for it: a tool
// runs by a grant and in no other way.
func (r *Registry) Handler(name string) (ToolHandler, bool) {
	if e := r.entry(name); e != nil && e.handler != nil {
		return e.handler, true
	}
	return nil, false
}
