// Package engine is the path: it offers tools, asks the model, judges every
// call of a turn before any of them runs, puts requests to people, records
// their decisions, and runs what was allowed, once.
//
// Read step.go down to the pause, settle.go from the answer to the result, and
// execute.go, which is the only file that can run a tool.
package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/audit"
	"github.com/ringi-dev/ringi/policy"
	"github.com/ringi-dev/ringi/sign"
	"github.com/ringi-dev/ringi/store/memory"
)

// Config is what an engine is made of. Every field has a useful zero value; it
// is read once, by New.
type Config struct {
	// Admit lets a call in as it starts, or refuses it: here belong limits over
	// several calls (finding S-43), for a verdict reserves nothing, and five
	// calls that are judged together all see room. It is asked inside the commit
	// that starts the call, when nothing else speaks against it; what it adds to
	// the ledger holds with the start, and stays where the call fails. An error
	// refuses the call, for good, and its text is the reason that the model
	// reads; so do a panic and more than 2 s. It must be quick, use neither
	// engine nor store, and keep nothing but in the ledger: it may be asked
	// twice for one start.
	//
	// It is not asked for reads that nobody approves, which have no commit of
	// their own, and for a repeat, which is the same call. A run that began with
	// it goes on only where it is. It needs a ringi.AdmittingStore. nil lets
	// every call in.
	Admit func(ctx context.Context, tx ringi.Ledger, call ringi.CallInfo) error
	// Agent names the agent in log and inbox.
	Agent string
	// AgentRequests is how many requests of the agent may be open at once, over all
	// of its runs; a call above it is denied, "too_many_requests", and nobody is
	// asked. Runs that ask in the same moment may go a little beyond. 0 and less
	// bound nothing.
	AgentRequests int
	// Approval is the user's own policy: rungs 1 to 3 of the ladder.
	Approval ringi.Approval
	// ContextFunc gives back, at every Run and Resume, what must not be stored.
	// A gate, Decide and Stateless ask it too, before a function of the user's
	// judges.
	ContextFunc func(context.Context, ringi.RunInfo) context.Context
	// Deciders names who may decide, where a tool names nobody itself. Zero:
	// any authenticated person.
	Deciders ringi.Deciders
	// Disabled are tools that nobody is offered.
	Disabled []string
	// Expiry is how long a request waits: zero 72 h, negative for ever.
	Expiry time.Duration
	// Floor is the operator's policy: it can only tighten.
	Floor ringi.Approval
	// ForbidAnswers takes answers away that tools allow (edit, respond).
	ForbidAnswers []ringi.Answer
	// ForeignTools takes calls of tools that nobody registered, from agents'
	// clients over [ringi.CallService]: each asks a person, and is shown as its
	// client's own (see [ringi.ForeignName]). Off in the zero value.
	ForeignTools bool
	// FourEyes says where no initiator may approve. Zero: nowhere.
	FourEyes FourEyes
	// Keyring signs requests and decisions and authenticates commits. nil works
	// unsigned over a store that never had a key.
	Keyring *sign.Keyring
	// GateIdle is how long the run of a gate stays open with nothing open in
	// it: zero 72 h, negative for ever.
	GateIdle time.Duration
	// Groups are the tool groups of every run; a run's own narrow them. nil has
	// all.
	Groups []string
	// HandOver are teams that a request may be handed to although the agent's
	// rule does not name them: who takes over where nobody decides in time. It
	// does not widen a tool's own rule.
	HandOver []string
	// Lease is how long a silent engine keeps its runs: zero 30 s. It beats
	// every third of that while it has running runs.
	Lease time.Duration
	// Limits bound every run; see ringi.Limits for the defaults.
	Limits ringi.Limits
	// Live is told what happens in runs of this engine, as it happens: deltas,
	// step_started, step_discarded and run_left; of what was committed, by
	// whomever in this process, number and kind alone (Events reads the rest). It
	// is called on the run's own goroutine and must return at once; a Body is
	// good until it does. What it does counts for nothing. nil is told nothing.
	Live func(ringi.Event)
	// Logger takes what an operator should know; nil discards it.
	Logger *slog.Logger
	// Model is asked at every step. An engine without one decides, cancels and
	// reads, but does not run.
	Model ringi.Model
	// Members knows who is in which team: where deciders are named by team, its
	// word counts for everybody whom it knows, when an answer is given and again
	// before it is spent. nil goes by Principal.Teams as it came, and by Teams.
	Members ringi.Members
	// NewID makes ids of threads and runs; nil is ringi.NewID.
	NewID func(prefix string, now time.Time) string
	// Now is the clock of the memory store that a nil Store means. A given
	// store has its own.
	Now func() time.Time
	// ObserveZoneUntil makes the zone gate compute and report, and still offer,
	// until then; never for remote tools. Zero enforces.
	ObserveZoneUntil time.Time
	// Observers are told what happens; nothing that they do counts.
	Observers []Observer
	// OnApprovalRequired answers requests in process. nil suspends the run. An
	// error is no decision: the request stays pending.
	OnApprovalRequired func(context.Context, ringi.ApprovalRequest) (ringi.Decision, error)
	// Persons knows the person behind each login: four eyes then compare people,
	// in every entry, when an answer is given and again before it is spent. nil
	// compares ids.
	Persons ringi.Persons
	// PrepareStep may narrow the tools and tighten the approval of a step.
	PrepareStep PrepareStep
	// ReadOnly makes an engine that reads and shows, and records nothing.
	ReadOnly bool
	// Registry holds the tools; nil has none.
	Registry *ringi.Registry
	// RuleFloor makes the approval rule itself a floor: code cannot wave a
	// write through. Off in the library's zero value.
	RuleFloor bool
	// RequireApproval are tools that the operator declares approval-bound.
	RequireApproval []string
	// Space separates tenants in one store: an engine sees one space. Empty is
	// "default".
	Space string
	// StopWhen ends a run, completed, after a step for which one of them holds.
	StopWhen []StopWhen
	// Store keeps the runs; nil is a memory store of this engine's own.
	Store ringi.Store
	// System is the system prompt of runs that bring none.
	System string
	// Teams are the known members of teams: where nobody who may decide is
	// left, the call is denied instead of asked into the void.
	Teams map[string][]string
	// TurnMode is eager in its zero value.
	TurnMode ringi.TurnMode
	// ThreadRequests is how many requests a thread may put within an hour; a call
	// above it is denied, "too_many_requests", and nobody is asked. 0 means 30,
	// negative bounds nothing.
	ThreadRequests int
	// UndeclaredRemote is the rule's word on remote tools that no operator
	// judged: zero asks a person.
	UndeclaredRemote ringi.Status
	// UseBy is how long an approval is good: zero 24 h.
	UseBy time.Duration
	// Zone is the trust zone of Model; zero has no ceiling. Where Model knows its
	// own (ringi.ZonedModel), the less trusted of both counts.
	Zone ringi.TrustZone
}

// FourEyes says which requests none of the run's initiators may approve.
type FourEyes string

// The reaches of four eyes.
const (
	FourEyesOff    FourEyes = ""
	FourEyesWrites FourEyes = "writes"
	FourEyesAll    FourEyes = "all"
)

// Engine runs agents. It is safe for concurrent use, and any number of engines
// may share a durable store.
type Engine struct {
	cfg      Config
	store    ringi.Store
	storeID  string
	opening  [sha256.Size]byte                        // of a prompt with cfg.System
	drafts   bool                                     // the store seals records when somebody reads them
	draftMAC func(runID string, c audit.Chain) string // of the newest of them; nil without a keyring
	reg      *ringi.Registry
	gates    policy.Gates
	rule     policy.RuleOptions
	limits   ringi.Limits
	judges   judges
	log      *slog.Logger
	heart    *heart
	opened   opened
	// hasFuncs says that a function of the user's judges calls.
	hasFuncs bool
	// silent says that no setting of the user's judges calls: the tool itself
	// and the rule do.
	silent bool
	offers offers
	kept   sync.Map // digests of definitions that the store keeps
	read   definitions
}

var _ ringi.Service = (*Engine)(nil)

// New makes an engine. It fails where the policy names a tool that does not
// exist, where a setting has an unknown value, and where the store has used
// keys that the keyring lacks.
func New(cfg Config) (*Engine, error) {
	cfg = cfg.own()
	if cfg.Registry == nil {
		cfg.Registry = ringi.NewRegistry()
	}
	if cfg.Store == nil {
		cfg.Store = memory.New(memory.Options{Now: cfg.Now})
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.NewID == nil {
		cfg.NewID = ringi.NewID
	}
	if cfg.Space == "" {
		cfg.Space = "default"
	}
	orDuration(&cfg.Expiry, 72*time.Hour)
	orDuration(&cfg.UseBy, 24*time.Hour)
	orDuration(&cfg.GateIdle, 72*time.Hour)
	orDuration(&cfg.Lease, 30*time.Second)
	zone, err := zoneWith(cfg.Zone, cfg.Model)
	if err != nil {
		return nil, fmt.Errorf("check configuration: %w", err)
	}
	cfg.Zone = zone
	if err := check(cfg); err != nil {
		return nil, fmt.Errorf("check configuration: %w", err)
	}
	e := &Engine{
		cfg: cfg, store: cfg.Store, reg: cfg.Registry, log: cfg.Logger,
		gates:  policy.Gates{Registry: cfg.Registry, Disabled: cfg.Disabled, Observe: !cfg.ObserveZoneUntil.IsZero(), ObserveUntil: cfg.ObserveZoneUntil},
		rule:   policy.RuleOptions{UndeclaredRemote: cfg.UndeclaredRemote, Floor: cfg.RuleFloor},
		limits: cfg.Limits.Or(ringi.DefaultLimits()),
	}
	j := e.judgesNow()
	e.silent = cfg.Approval.Func == nil && len(cfg.Approval.Tools) == 0 && cfg.Floor.Func == nil && len(cfg.Floor.Tools) == 0 && len(cfg.RequireApproval) == 0
	e.hasFuncs = j.Func || len(j.ToolFuncs) > 0 || j.FloorFunc || len(j.FloorToolFuncs) > 0
	id, err := e.store.ID(context.Background())
	if err != nil {
		return nil, fmt.Errorf("read store id: %w", err)
	}
	e.storeID, e.opening = id, promptOpening(cfg.System)
	if store, ok := cfg.Store.(ringi.DraftStore); ok && plainID(id) {
		e.drafts = store.TakesDrafts()
	}
	if cfg.Keyring != nil {
		e.draftMAC = e.macOf
	}
	e.heart = newHeart(e)
	if err := e.rememberKeys(context.Background()); err != nil {
		return nil, err
	}
	if names := e.reg.Undeclared(); len(names) > 0 {
		e.log.Warn("tools without a declared effect run as non-idempotent writes", "tools", names)
	}
	return e, nil
}

// judges is what judges a run, for a registry of a length: it only grows, and
// a tool that comes later may bring a function of its own.
type judges struct {
	mu  sync.Mutex
	len int
	now ringi.Judges
}

func (e *Engine) judgesNow() ringi.Judges {
	n := e.reg.Len() + 1 // 0 is never
	e.judges.mu.Lock()
	defer e.judges.mu.Unlock()
	if e.judges.len != n {
		e.judges.now = policy.Judges(e.cfg.Approval, e.cfg.Floor, e.cfg.RequireApproval, e.reg, e.cfg.PrepareStep != nil)
		e.judges.now.Admit = e.cfg.Admit != nil
		e.judges.now.Config = configDigest(e.cfg)
		e.judges.len = n
	}
	return e.judges.now
}

// own copies what a caller could change later.
func (cfg Config) own() Config {
	cfg.Approval.Tools, cfg.Floor.Tools = maps.Clone(cfg.Approval.Tools), maps.Clone(cfg.Floor.Tools)
	cfg.RequireApproval, cfg.Disabled = slices.Clone(cfg.RequireApproval), slices.Clone(cfg.Disabled)
	cfg.Groups, cfg.HandOver = slices.Clone(cfg.Groups), slices.Clone(cfg.HandOver)
	cfg.ForbidAnswers, cfg.Observers, cfg.StopWhen = slices.Clone(cfg.ForbidAnswers), slices.Clone(cfg.Observers), slices.Clone(cfg.StopWhen)
	cfg.Deciders.People, cfg.Deciders.Teams = slices.Clone(cfg.Deciders.People), slices.Clone(cfg.Deciders.Teams)
	if cfg.ThreadRequests == 0 {
		cfg.ThreadRequests = 30
	}
	cfg.Teams = maps.Clone(cfg.Teams)
	for team, members := range cfg.Teams {
		cfg.Teams[team] = slices.Clone(members)
	}
	return cfg
}

func orDuration(d *time.Duration, def time.Duration) {
	if *d == 0 {
		*d = def
	}
}

// minLease is the shortest lease: below it a slow commit alone would lose it.
const minLease = 10 * time.Millisecond

func check(cfg Config) error {
	if err := policy.Check(cfg.Approval, cfg.Floor, cfg.RequireApproval, cfg.Registry); err != nil {
		return err
	}
	if cfg.Zone != "" && !cfg.Zone.Known() {
		return fmt.Errorf("unknown trust zone %q", cfg.Zone)
	}
	if !slices.Contains([]FourEyes{FourEyesOff, FourEyesWrites, FourEyesAll}, cfg.FourEyes) {
		return fmt.Errorf("unknown four eyes %q", cfg.FourEyes)
	}
	if cfg.TurnMode != "" && cfg.TurnMode != ringi.Eager && cfg.TurnMode != ringi.Hold {
		return fmt.Errorf("unknown turn mode %q", cfg.TurnMode)
	}
	if s := cfg.UndeclaredRemote; s != "" && !s.Known() {
		return fmt.Errorf("unknown status %q for undeclared remote tools", s)
	}
	if _, ok := cfg.Store.(ringi.AdmittingStore); cfg.Admit != nil && !ok {
		return errors.New("the store keeps no ledger: Admit needs one")
	}
	if cfg.Lease < minLease {
		return fmt.Errorf("lease %s is shorter than %s", cfg.Lease, minLease)
	}
	for _, a := range cfg.ForbidAnswers {
		if a != ringi.Edit && a != ringi.Respond {
			return fmt.Errorf("answer %q cannot be forbidden", a)
		}
	}
	return policy.CheckNames("Disabled", cfg.Disabled, cfg.Registry)
}

// rememberKeys holds the store's key memory against the keyring: a process
// that lacks a key which the store has used does not start, unless it only
// reads.
func (e *Engine) rememberKeys(ctx context.Context) error {
	used, err := e.store.Keys(ctx)
	if err != nil {
		return fmt.Errorf("read key memory: %w", err)
	}
	k := e.cfg.Keyring
	for id, check := range used {
		if k == nil || !k.Has(id) {
			if e.cfg.ReadOnly {
				continue
			}
			return fmt.Errorf("open store: %w: it has used key %s", ringi.ErrNoKey, id)
		}
		if k.Check(id) != check {
			return fmt.Errorf("open store: %w: key %s is not the one that it has used", ringi.ErrNoKey, id)
		}
	}
	if k == nil || e.cfg.ReadOnly {
		return nil
	}
	if len(used) == 0 {
		// Runs of before the first key would neither verify nor go on.
		rows, err := e.store.Runs(ctx, ringi.RunQuery{Space: e.cfg.Space, Limit: 1})
		if err != nil {
			return fmt.Errorf("list runs: %w", err)
		}
		if len(rows) > 0 {
			return fmt.Errorf("open store: %w: it was used without a key; a key needs a new store", ringi.ErrNoKey)
		}
	}
	id := k.SigningID()
	if _, known := used[id]; known {
		return nil
	}
	if err := e.store.RememberKey(ctx, id, k.Check(id)); err != nil {
		return fmt.Errorf("remember key: %w", err)
	}
	return nil
}

// configDigest informs an auditor; it never refuses.
func configDigest(cfg Config) string {
	h := sha256.New()
	fmt.Fprintf(h, "ringi-config-v1\x00%v\x00%v\x00%q\x00%q\x00%v\x00%v\x00%q\x00%q\x00%q\x00%v\x00%v\x00%q", cfg.RuleFloor, cfg.ObserveZoneUntil, cfg.Agent, cfg.Approval.Version,
		cfg.Deciders, cfg.Disabled, cfg.FourEyes, cfg.Floor.Version, cfg.TurnMode, cfg.Limits, cfg.RequireApproval, cfg.Zone)
	for _, t := range cfg.Registry.Tools() {
		fmt.Fprintf(h, "\x00%s", cfg.Registry.Digest(t.Name))
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// mayWrite refuses what a read-only engine, or one whose store's clock stands
// still, must not do.
func (e *Engine) mayWrite() error {
	if e.cfg.ReadOnly {
		return fmt.Errorf("engine is read-only: %w", ringi.ErrNotRecorded)
	}
	return nil
}

// Unattended answers which of the named tools run without a human pause of
// either kind, by the same verdict code as a run.
func (e *Engine) Unattended() policy.Filter {
	return policy.Unattended(e.reg, e.cfg.Approval, e.cfg.Floor, e.cfg.RequireApproval, e.rule)
}

// UnattendedExplain answers for every name what it is to a caller without an
// approval step, and why.
func (e *Engine) UnattendedExplain(names []string) []ringi.Withheld {
	return e.Unattended().Explain(names)
}

// gatesAt are the gates at a time: an "observe" of the zone gate has an end.
func (e *Engine) gatesAt(at time.Time) policy.Gates {
	g := e.gates
	g.Now = at
	return g
}

// Offer returns what a run would be offered, and what it would be refused.
func (e *Engine) Offer(run ringi.RunInfo) ringi.Offer {
	return e.gatesAt(time.Now()).Offer(run, e.cfg.Zone, nil)
}

// Explain says of one tool how each of the five gates answers.
func (e *Engine) Explain(name string, run ringi.RunInfo) policy.Explanation {
	return e.gatesAt(time.Now()).Explain(name, run, e.cfg.Zone)
}

// now is the store's time.
func (e *Engine) now(ctx context.Context) (time.Time, error) {
	t, err := e.store.Now(ctx)
	if err != nil {
		return time.Time{}, fmt.Errorf("read store time: %w", err)
	}
	return t, nil
}

// isDefinite reports whether a store's error says that nothing was written.
func isDefinite(err error) bool {
	for _, known := range []error{ringi.ErrConflict, ringi.ErrLeaseLost, ringi.ErrBusy, ringi.ErrRunOpen, ringi.ErrClock, ringi.ErrNotFound, ringi.ErrFinal, ringi.ErrCorrupt, ringi.ErrNotAdmitted} {
		if errors.Is(err, known) {
			return true
		}
	}
	_, ok := errors.AsType[*ringi.RequestStateError](err)
	return ok
}
