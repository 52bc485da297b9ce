package ringi

import (
	"context"
	"time"
)

// Store keeps runs. It is small, it is not for third parties before version
// 1.0, and storetest.Exercise holds every implementation to the same promises.
//
// A store never looks into an event. It keeps what it is given byte for byte,
// and it checks what a statement can check: sequence numbers, leases, states
// of requests, deadlines, one open run a thread.
type Store interface {
	// ID returns the store's own id, made when it was created and kept for
	// ever. It is part of every signature.
	ID(ctx context.Context) (string, error)

	// Now returns the store's time in UTC microseconds. On one machine it is
	// the wall clock, never earlier than the newest time recorded in this
	// store, but where AcceptClock says that this was wrong.
	Now(ctx context.Context) (time.Time, error)

	// Clock tells how the store's time stands. AcceptClock records that the
	// wall clock is right although later times are recorded: from then on the
	// store's time is the wall clock again, and ErrClock is over. It is refused
	// where nothing is: a plain error. The rows of runs take the accepted time
	// where theirs is later; records, requests and deadlines keep theirs.
	Clock(ctx context.Context) (StoreClock, error)
	AcceptClock(ctx context.Context, by, reason string) (ClockCorrection, error)

	// Commit applies one change of one run, whole or not at all. It returns
	// ErrConflict where the run's sequence number is no longer Expect, or a
	// first commit's thread has gone on since Follows,
	// ErrLeaseLost where owner or epoch are not the writer's or a claim's owner
	// has no living heartbeat, ErrBusy where a claim meets a living owner,
	// ErrRunOpen where the thread has an open run, ErrCorrupt for records in a
	// run with the mark, ErrFinal where an ended run would go on, a
	// *RequestStateError where a request is not in the state that the change
	// needs or past its time, ErrClock where the clock is not to be trusted.
	// Any other error may mean that the change was made all the same: the
	// caller reloads and looks.
	Commit(ctx context.Context, c *Commit) error

	// Load returns a run with all its records. ErrNotFound.
	Load(ctx context.Context, space, runID string) (*StoredRun, error)

	// Row returns the run's row alone. ErrNotFound.
	Row(ctx context.Context, space, runID string) (RunRow, error)

	// Transcript returns the ended runs of a thread in the order of their
	// start, with their records: one indexed query.
	Transcript(ctx context.Context, space, thread string) ([]*StoredRun, error)

	// Runs lists run rows, newest first.
	Runs(ctx context.Context, q RunQuery) ([]RunRow, error)

	// Runnable lists runs of every space that wait for an owner: queued ones,
	// running ones whose owner's heartbeat is older than its lease, waiting
	// ones past their deadline, and running ones that nobody holds (those of a
	// gate, between two calls) past theirs. Oldest first.
	Runnable(ctx context.Context, limit int) ([]RunRow, error)

	// Spaces lists the spaces that hold a run or a request, sorted by their
	// bytes.
	Spaces(ctx context.Context) ([]string, error)

	// Request returns one request row, with the state that Requests lists.
	// ErrNotFound.
	Request(ctx context.Context, space, id string) (RequestRow, error)

	// Requests lists request rows, in the order that q asks for. A pending
	// request past its time is listed as expired. An error of q.Check is given
	// back.
	Requests(ctx context.Context, q RequestQuery) ([]RequestRow, error)

	// RequestCount counts what Requests would list were it not for Limit and
	// After, up to limit (0: 1,000; at most 1,000).
	RequestCount(ctx context.Context, q RequestQuery, limit int) (int, error)

	// RequestTally counts what was settled among the requests that q selects,
	// whatever its State, Limit and After, from a time on and before another:
	// what RequestQuery.Tally says of all rows. Its cost is that of the rows in
	// that time.
	RequestTally(ctx context.Context, q RequestQuery, from, to time.Time) (RequestTally, error)

	// Beat renews an owner's heartbeat: it lives until now plus lease. Nothing
	// else renews it, and a claim needs one that lives.
	Beat(ctx context.Context, owner string, lease time.Duration) error

	// SaveTool keeps a tool definition by its digest; Tool reads it.
	// ErrNotFound.
	SaveTool(ctx context.Context, digest string, definition []byte) error
	Tool(ctx context.Context, digest string) ([]byte, error)

	// Attempt keeps a refused attempt, or the late result of a call, beside
	// the chain. It is bounded: at most 1,000 rows a run and 100,000 in all,
	// the oldest go first.
	Attempt(ctx context.Context, a Attempt) error
	Attempts(ctx context.Context, space, runID string) ([]Attempt, error)

	// Keys returns the key ids that the store has used, with their check
	// values; RememberKey adds one. ForgetKey drops one, but never the only
	// one: a keyed store stays keyed. ErrNotFound. It does not look at what
	// the key has signed; Engine.RetireKey does.
	Keys(ctx context.Context) (map[string]string, error)
	RememberKey(ctx context.Context, id, check string) error
	ForgetKey(ctx context.Context, id string) error

	// Flag reads, and SetFlag writes, a mark of the store itself: "simulated"
	// for a store that a replay made, "scripted_decisions" where a script may
	// decide. An unknown flag is empty.
	Flag(ctx context.Context, name string) (string, error)
	SetFlag(ctx context.Context, name, value string) error

	Close() error
}

// ChangeTeller is a Store that tells when something was committed, so that who
// waits for it need not look all the time. It is optional. A channel may be
// closed late, or for nothing; who asks first and looks then misses nothing.
type ChangeTeller interface {
	// Changed returns a channel that is closed once something was committed
	// after the call, by any process.
	Changed() <-chan struct{}
	// ChangedElsewhere is Changed for commits of other processes alone.
	ChangedElsewhere() <-chan struct{}
}

// StoreClock is how a store's time stands. Times are UTC microseconds.
type StoreClock struct {
	// Wall is the wall clock, Newest the newest time recorded; zero in a store
	// that holds nothing.
	Wall, Newest time.Time
	// Refuses is set where Newest is more than two minutes ahead of Wall:
	// nothing is claimed, decided, spent or expired (ErrClock).
	Refuses bool
	// Corrections are those that were accepted, oldest first, the last 100.
	Corrections []ClockCorrection
}

// ClockCorrection is an operator's word that a store's clock is right although
// later times are recorded.
type ClockCorrection struct {
	// By is who said so, Reason why.
	By     string `json:"by"`
	Reason string `json:"reason,omitempty"`
	// At is the time that was accepted as the present one, Newest the newest
	// time that was recorded before.
	At     time.Time `json:"at"`
	Newest time.Time `json:"newest"`
}

// DraftStore is a Store that takes drafts: a Commit with a Sealer. It is
// optional, and for stores in memory alone: what it holds is sealed before
// anybody sees it.
type DraftStore interface {
	Store
	// TakesDrafts reports whether Commit looks at Commit.Sealer.
	TakesDrafts() bool
}

// Sealer completes the drafts of one run, in their order.
type Sealer interface {
	// Seal fills in what drafts lack, within the bytes of their heads and in
	// Hash, and returns the last hash, and its MAC where there is a keyring. The
	// records and what they point to are the caller's own.
	Seal(drafts []Record) (head [32]byte, mac string)
}

// Record is one event as stored: an exact header that is chained, and a
// payload beside it that can be erased while the chain stays whole.
type Record struct {
	Seq  int64
	Kind EventKind
	// Head is the header's exact bytes.
	Head []byte
	// Payload is the body's exact bytes; nil once erased.
	Payload []byte
	// Salt is the 32 random bytes of the commitment; nil once erased.
	Salt []byte
	// Hash is SHA-256 over the hash before it and Head.
	Hash [32]byte
}

// RunRow is the row of a run: an index, with the head of its chain.
type RunRow struct {
	Space, ID, Thread string
	Agent             string
	Parent            string // the parent run, for a child
	Status            RunStatus
	Reason            Reason
	// Seq and Head are those of the newest record; MAC binds both with the
	// store's id and the run's, where there is a keyring.
	Seq  int64
	Head [32]byte
	MAC  string
	// Owner and Epoch are the lease; Owner is empty for a run that nobody
	// holds. The store sets both.
	Owner string
	Epoch int64
	// Attempts counts claims since the last commit with Progress. The store
	// counts.
	Attempts int
	// Corrupt is set where the log does not verify; nothing of it runs.
	Corrupt string
	// Deadline is when the last open request is past its time, and of a gate's
	// run when something is next due; zero for none.
	Deadline             time.Time
	CreatedAt, UpdatedAt time.Time
}

// StoredRun is a run's row with its records in order. The caller owns it: a
// store hands out copies.
type StoredRun struct {
	Row     RunRow
	Records []Record
}

// RequestRow is the inbox's row of a request: a projection, never the source
// of a grant.
type RequestRow struct {
	Space, ID, RunID, Thread, CallID string
	Kind                             RequestKind
	Tool                             string
	State                            RequestState
	Digest                           string
	// Agent is the run's, Initiator the first of those who asked for the run; ""
	// where there is none.
	Agent, Initiator string
	// People and Teams say who may decide, as the request does; both empty:
	// anybody. A store gives an empty list back as nil.
	People, Teams []string
	// Text is what RequestQuery.Search looks in: words in lower case, secrets
	// left out, at most 2 KiB.
	Text string
	// Risk is given back as Risk.OrHigh has it.
	Risk                 Risk
	CreatedAt, ExpiresAt time.Time
	DecidedAt, UseBy     time.Time
	DecidedBy            string
}

// RequestChange moves a request from one state to the next, in the statement
// that also compares the time.
type RequestChange struct {
	ID       string
	From, To RequestState
	// Live refuses the change where the store's time has reached the
	// request's deadline: ExpiresAt for a pending one, UseBy for an approved.
	Live bool
	// Past refuses the change where the deadline is not reached.
	Past bool
	// DecidedAt, DecidedBy and UseBy are set where a person decides; zero ones
	// keep what is there.
	DecidedAt, UseBy time.Time
	DecidedBy        string
}

// Commit is one change of one run. The store applies all of it in one
// transaction, or nothing.
type Commit struct {
	Space, RunID string
	// Expect is the sequence number that the writer read; 0 makes the run.
	Expect int64
	// Follows, of a first commit, is the newest run that its thread must have,
	// or NoRun; empty is not looked at.
	Follows string
	// Records are the new events, Expect+1 onwards. A claim, a release or a
	// corruption mark may come without any.
	Records []Record
	// Sealer, where set, says that Records are drafts: everything that is
	// chosen is in them, and what is reckoned from it, the commitment in Head,
	// Hash, Row.Head and Row.MAC, is made by the Sealer before anybody reads the run.
	// Only a DraftStore is given one.
	Sealer Sealer

	// Owner and Epoch name the lease that the writer holds. A settler leaves
	// Owner empty; its records must all be of kinds that settle.
	Owner string
	Epoch int64
	// Claim takes the run for Owner: allowed where nobody holds it, or the
	// holder's heartbeat is older than its lease, or the holder is Owner
	// itself. The epoch rises by one (to Epoch+1, where Epoch is the one read)
	// and the attempt is counted.
	Claim bool
	// Progress sets the count of attempts back to zero: the commit holds more
	// than a start.
	Progress bool
	// Release frees the lease.
	Release bool
	// Settle marks a settler's commit.
	Settle bool

	// Row holds the columns after the change: Thread, Agent and Parent (first
	// commit only), Status, Reason, Head, MAC, Deadline, Corrupt. The store
	// fills in the others. An empty Status keeps status, reason and deadline; a
	// mark of corruption needs none. A settler's Status is the one that the run
	// has if nobody runs it, never running: it counts only where the run waits
	// or is queued; while it runs the status stays.
	Row RunRow

	Requests []RequestRow
	Changes  []RequestChange
	// Tools are definitions to keep, by digest.
	Tools map[string][]byte
	// Wake says that the change makes the run runnable.
	Wake bool
}

// Attempt is something that was refused, or came too late.
type Attempt struct {
	Space, RunID, RequestID, CallID string
	// Kind is the refusal's error code, or "late_result".
	Kind    string
	By      string
	Channel string
	Detail  string
	At      time.Time
}

// RunQuery selects run rows.
type RunQuery struct {
	Space  string
	Thread string // empty: all
	Status []RunStatus
	Limit  int // 0: 100; at most 1,000
	// After continues behind this run id, in the same order.
	After string
}
