package ringi

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// MaxSearch is how long RequestQuery.Search may be, in characters.
const MaxSearch = 200

// RequestOrder is the order of a list of requests.
type RequestOrder string

// The orders. Requests that are equal in one are listed by CreatedAt, then ID
// (newest first: both turned round).
const (
	OldestFirst   RequestOrder = "" // by CreatedAt
	NewestFirst   RequestOrder = "newest"
	SoonestFirst  RequestOrder = "soonest"  // by ExpiresAt; those that never expire come last
	RiskiestFirst RequestOrder = "riskiest" // by Risk
)

// RequestQuery selects requests. Every field that is set narrows the list.
type RequestQuery struct {
	Space  string
	RunID  string
	Thread string
	State  []RequestState // nil: pending
	Tool   string         // its exact name
	Agent  string         // its exact name
	Kind   RequestKind
	Risk   Risk
	// For lists what somebody may decide: what names him by ID, or one of his
	// Teams, or names nobody. It is a filter and no permission: four eyes,
	// admin-only tools and policy are not looked at. Other fields mean nothing.
	For Principal
	// Initiator is the ID of who asked for the run.
	Initiator string
	// Search lists the requests whose text holds every word, each anywhere in
	// it and in any case: tool, agent, ids of request and call, and the texts of
	// the input. Nothing in it is a wildcard or an operator. At most MaxSearch
	// characters.
	Search string
	Order  RequestOrder // OldestFirst
	Limit  int          // 0: 50; at most 1,000
	// After continues behind this request id, in the same order.
	After string
}

// Check refuses a query that no store answers: ErrTooLarge for a search beyond
// MaxSearch, a plain error for an unknown order.
func (q RequestQuery) Check() error {
	if n := utf8.RuneCountInString(q.Search); n > MaxSearch {
		return fmt.Errorf("search has %d characters, at most %d are taken: %w", n, MaxSearch, ErrTooLarge)
	}
	switch q.Order {
	case OldestFirst, NewestFirst, SoonestFirst, RiskiestFirst:
		return nil
	}
	return fmt.Errorf("unknown order %q of requests", q.Order)
}

// Words are the words of Search, as RequestRow.Text spells them.
func (q RequestQuery) Words() []string {
	words := strings.Fields(strings.ToLower(q.Search))
	slices.Sort(words)
	return slices.Compact(words)
}

// Filters reports whether more is asked for than space, run, thread and state.
func (q RequestQuery) Filters() bool {
	return q.Tool != "" || q.Agent != "" || q.Kind != "" || q.Risk != "" || q.Initiator != "" || q.forSomebody() || len(q.Words()) > 0
}

func (q RequestQuery) forSomebody() bool { return q.For.ID != "" || len(q.For.Teams) > 0 }

// Matcher returns what reports whether a row is among those that the query
// selects: what a store's indices find is held against it. The row's State is
// the one that is listed: expired for a pending one past its time.
func (q RequestQuery) Matcher() func(*RequestRow) bool {
	words, states, somebody := q.Words(), q.State, q.forSomebody()
	if len(states) == 0 {
		states = []RequestState{Pending}
	}
	return func(r *RequestRow) bool {
		return r.Space == q.Space && slices.Contains(states, r.State) &&
			(q.RunID == "" || q.RunID == r.RunID) && (q.Thread == "" || q.Thread == r.Thread) &&
			(q.Tool == "" || q.Tool == r.Tool) && (q.Agent == "" || q.Agent == r.Agent) &&
			(q.Kind == "" || q.Kind == r.Kind) && (q.Risk == "" || q.Risk.OrHigh() == r.Risk.OrHigh()) && (q.Initiator == "" || q.Initiator == r.Initiator) &&
			(!somebody || mayDecide(r, &q.For)) &&
			!slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(r.Text, w) })
	}
}

// mayDecide reports whether a row names a principal, one of his teams or
// nobody.
func mayDecide(r *RequestRow, p *Principal) bool {
	return len(r.People) == 0 && len(r.Teams) == 0 || p.ID != "" && slices.Contains(r.People, p.ID) ||
		slices.ContainsFunc(r.Teams, func(team string) bool { return slices.Contains(p.Teams, team) })
}

// Compare orders two rows as the query asks.
func (q RequestQuery) Compare(a, b *RequestRow) int {
	age := a.CreatedAt.Compare(b.CreatedAt)
	if age == 0 {
		age = cmp.Compare(a.ID, b.ID)
	}
	switch q.Order {
	case NewestFirst:
		return -age
	case SoonestFirst:
		if soon := compareDeadlines(a.ExpiresAt, b.ExpiresAt); soon != 0 {
			return soon
		}
	case RiskiestFirst:
		if risk := cmp.Compare(a.Risk.rank(), b.Risk.rank()); risk != 0 {
			return risk
		}
	}
	return age
}

// compareDeadlines puts the zero time last: it never comes.
func compareDeadlines(a, b time.Time) int {
	if a.IsZero() || b.IsZero() {
		return cmp.Compare(boolNumber(a.IsZero()), boolNumber(b.IsZero()))
	}
	return a.Compare(b)
}

func boolNumber(b bool) int {
	if b {
		return 1
	}
	return 0
}
