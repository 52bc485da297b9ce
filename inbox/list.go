package inbox

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/access"
	"github.com/ringi-dev/ringi/internal/escape"
	"github.com/ringi-dev/ringi/internal/mask"
)

const (
	pageOf    = 50 // requests on a page
	scanPages = 20 // pages that are read to find them, where a filter leaves few
)

// tab is a link of a row of links; the current one is marked.
type tab struct {
	Name, Href string
	Current    bool
}

type listBody struct {
	State string // pending, decided, expired
	Whose string // me, teams, mine, all
	// Query, Tool, Agent, Kind and Order are the filters of the address.
	Query, Tool, Agent, Kind, Order string
	Filtered                        bool
	Tabs                            []tab
	Views                           []tab
	Items                           []item
	// Next continues the list; Cut: not all of it could be looked through.
	Next string
	Cut  bool
	// Groups are calls of one tool and shape that can be decided together.
	Groups  []group
	Refresh bool
	// Tools and Agents are what may be filtered by.
	Tools, Agents []string
	// At is when the list was read, in milliseconds: what was asked later is new.
	At int64
	// Clear is the list without filters.
	Clear string
	// Batch is set where something on the page can be decided with others.
	Batch bool
	// Kept are the views that he keeps under a name; Name is that of this one.
	Kept []tab
	Name string
	// Address is what stands behind the question mark; Plain is a list as its tab
	// shows it.
	Address string
	Plain   bool
	Problem string
}

type group struct {
	Tool, Fields string
	Count        int
	Href         string
}

// item is a request in a list.
type item struct {
	ID       string
	Sentence sentence
	State    ringi.RequestState
	Word     string
	Chips    []chip
	Money    []sum
	Args     []arg
	More     int
	Full     bool
	For      string
	By       string
	R        ringi.ApprovalRequest
	Batch    bool
	Unread   bool // it waits, and he never had it before him

	// shape is the same for items that one table can hold; see batchKey.
	shape, fields string
}

// arg is an argument of a call in a few characters; the request's page has it
// whole.
type arg struct {
	Name, Value string
	Masked      bool
}

var stateOf = map[string][]ringi.RequestState{
	"pending": {ringi.Pending},
	"decided": {ringi.Granted, ringi.Spent, ringi.Refused},
	"expired": {ringi.Expired, ringi.Withdrawn},
}

var listTitle = map[string]string{"pending": "Pending", "decided": "Decided", "expired": "Expired and withdrawn"}

func (in *inbox) list(w http.ResponseWriter, r *http.Request, who access.Who) error {
	return in.showList(w, r, who, http.StatusOK, r.URL.Query(), "")
}

func (in *inbox) showList(w http.ResponseWriter, r *http.Request, who access.Who, status int, q url.Values, problem string) error {
	b := listOf(who, q)
	b.At, b.Problem = in.now().UnixMilli(), problem
	in.listTabs(&b, who)
	p := page{Name: "list", Title: listTitle[b.State]}
	if q.Get("refresh") == "1" {
		b.Refresh, p.Refresh = true, 30
	}
	if err := in.filters(r.Context(), &b); err != nil {
		return err
	}
	if err := in.kept(r.Context(), who, &b); err != nil {
		return err
	}
	if err := in.items(r.Context(), who, &b, q.Get("after")); err != nil {
		return err
	}
	if err := in.unread(r.Context(), who, &b); err != nil {
		return err
	}
	p.Flash = in.flashOf(r, who)
	p.Body = b
	return in.show(w, status, who, p)
}

// listOf is the list that an address asks for.
func listOf(who access.Who, q url.Values) listBody {
	b := listBody{State: q.Get("state"), Whose: q.Get("show"), Query: cut(strings.TrimSpace(q.Get("q")), ringi.MaxSearch),
		Tool: q.Get("tool"), Agent: q.Get("agent"), Kind: q.Get("kind"), Order: q.Get("order")}
	b.tidy(who)
	return b
}

// unread marks what he never had before him, of what waits and is shown to him
// whole.
func (in *inbox) unread(ctx context.Context, who access.Who, b *listBody) error {
	var ids []string
	for _, it := range b.Items {
		if it.Full && it.State == ringi.Pending {
			ids = append(ids, it.ID)
		}
	}
	opened, err := in.people.Opened(ctx, who, ids)
	if err != nil {
		return err
	}
	for i := range b.Items {
		it := &b.Items[i]
		it.Unread = it.Full && it.State == ringi.Pending && !opened[it.ID]
	}
	return nil
}

// tidy puts what is not known to what is usual: pending ones the oldest first,
// others the newest, for who decides what he may decide and for others what they
// asked for.
func (b *listBody) tidy(who access.Who) {
	usual, order := "me", "oldest"
	if !who.Has(access.RoleApprover) {
		usual = "mine"
	}
	if stateOf[b.State] == nil {
		b.State = "pending"
	}
	if b.State != "pending" {
		order = "newest"
	}
	if !slices.Contains([]string{"me", "teams", "mine", "all"}, b.Whose) {
		b.Whose = usual
	}
	if !slices.Contains([]string{"oldest", "newest", "soonest", "riskiest"}, b.Order) || b.State != "pending" && (b.Order == "soonest" || b.Order == "riskiest") {
		b.Order = order
	}
	b.Filtered = b.Query != "" || b.Tool != "" || b.Agent != "" || b.Kind != "" || b.Order != order
	b.Plain = !b.Filtered && b.Whose == usual
}

// at is the address of the list with another state, view, or page.
func (b *listBody) at(base string, change ...string) string {
	v := url.Values{"state": {b.State}, "show": {b.Whose}, "q": {b.Query}, "tool": {b.Tool}, "agent": {b.Agent}, "kind": {b.Kind}, "order": {b.Order}}
	for i := 0; i < len(change); i += 2 {
		v.Set(change[i], change[i+1])
	}
	if v.Get("state") != b.State {
		v.Del("order")
	}
	if v.Get("state") == "pending" {
		v.Del("state")
	}
	if v.Get("show") == "me" {
		v.Del("show")
	}
	if o := v.Get("order"); o == "oldest" && !v.Has("state") || o == "newest" && v.Has("state") {
		v.Del("order")
	}
	for key := range v {
		if v.Get(key) == "" {
			v.Del(key)
		}
	}
	if len(v) == 0 {
		return base + "/"
	}
	return base + "/?" + v.Encode()
}

func (in *inbox) listTabs(b *listBody, who access.Who) {
	for _, s := range [][2]string{{"pending", "Pending"}, {"decided", "Decided"}, {"expired", "Expired"}} {
		b.Tabs = append(b.Tabs, tab{s[1], b.at(in.base, "state", s[0]), s[0] == b.State})
	}
	for _, s := range [][2]string{{"me", "For me"}, {"teams", "My teams"}, {"mine", "Mine"}, {"all", "All"}} {
		if s[0] == "me" && !who.Has(access.RoleApprover) {
			continue
		}
		b.Views = append(b.Views, tab{s[1], b.at(in.base, "show", s[0]), s[0] == b.Whose})
	}
	b.Clear = b.at(in.base, "q", "", "tool", "", "agent", "", "kind", "", "order", "")
}

// filters lists what a list may be filtered by: tools and agents as this server
// has them, and those that the address names.
func (in *inbox) filters(ctx context.Context, b *listBody) error {
	agents, err := in.service.Agents(ctx)
	if err != nil {
		return err
	}
	b.Tools, b.Agents = []string{}, []string{}
	if b.Tool != "" {
		b.Tools = append(b.Tools, b.Tool)
	}
	if b.Agent != "" {
		b.Agents = append(b.Agents, b.Agent)
	}
	for _, a := range agents {
		b.Tools, b.Agents = append(b.Tools, a.Tools...), append(b.Agents, a.Name)
	}
	slices.Sort(b.Tools)
	slices.Sort(b.Agents)
	b.Tools, b.Agents = slices.Compact(b.Tools), slices.Compact(b.Agents)
	return nil
}

// query asks the store for what a view shows; ok is false where that is nothing.
func (b *listBody) query(who access.Who) (q ringi.RequestQuery, ok bool) {
	q = ringi.RequestQuery{State: stateOf[b.State], Tool: b.Tool, Agent: b.Agent, Kind: ringi.RequestKind(b.Kind), Search: b.Query, Limit: pageOf}
	switch b.Order {
	case "newest":
		q.Order = ringi.NewestFirst
	case "soonest":
		q.Order = ringi.SoonestFirst
	case "riskiest":
		q.Order = ringi.RiskiestFirst
	}
	switch b.Whose {
	case "mine":
		q.Initiator = who.Principal.ID
	case "teams":
		q.For = ringi.Principal{Teams: who.Principal.Teams}
		return q, len(who.Principal.Teams) > 0
	case "me":
		q.For = who.Principal
	default:
		narrow(who, &q)
	}
	return q, true
}

// narrow has a query list no more than somebody may see.
func narrow(who access.Who, q *ringi.RequestQuery) {
	switch {
	case access.May(who, access.ApprovalsList, access.Other) == nil:
	case who.Has(access.RoleApprover):
		q.For = who.Principal
	default:
		q.Initiator = who.Principal.ID
	}
}

// items reads pages of the store's list until it has one that may be shown.
func (in *inbox) items(ctx context.Context, who access.Who, b *listBody, after string) error {
	q, ok := b.query(who)
	if !ok {
		return nil
	}
	defer b.group(in.base)
	for range scanPages {
		q.After = after
		p, err := in.service.Requests(ctx, q)
		if err != nil {
			return err
		}
		for i, r := range p.Requests {
			s := stands(who, r)
			if !s.may(who, access.ApprovalsList) || !b.takes(who, s) {
				continue
			}
			b.Items = append(b.Items, in.itemOf(ctx, s))
			if len(b.Items) == pageOf && (p.Next != "" || i+1 < len(p.Requests)) {
				b.Next = b.at(in.base, "after", r.ID)
				return nil
			}
		}
		if after = p.Next; after == "" {
			return nil
		}
	}
	b.Cut, b.Next = true, b.at(in.base, "after", after)
	return nil
}

// takes reports whether a list shows a request that its query found. Who does
// not see an input finds nothing by it either (S-28).
func (b *listBody) takes(who access.Who, s seen) bool {
	switch b.Whose {
	case "me":
		if !s.full || s.owner&access.Asked == 0 {
			return false
		}
	case "teams":
		if !slices.ContainsFunc(s.Deciders.Teams, func(t string) bool { return slices.Contains(who.Principal.Teams, t) }) {
			return false
		}
	}
	if s.full || b.Query == "" {
		return true
	}
	open := strings.ToLower(s.Call.Tool + " " + s.Agent + " " + s.ID + " " + s.Call.ID)
	return !slices.ContainsFunc(ringi.RequestQuery{Search: b.Query}.Words(), func(word string) bool { return !strings.Contains(open, word) })
}

func (in *inbox) itemOf(ctx context.Context, s seen) item {
	it := item{ID: s.ID, Sentence: sentenceOf(s.ApprovalRequest), State: s.State, Word: stateWord(s.State), Full: s.full, R: s.ApprovalRequest,
		By: in.nameOf(ctx, s.DecidedBy)}
	if !s.full {
		return it
	}
	d := showJSON(string(s.Call.Input), maskerOf(s.ApprovalRequest))
	it.Chips = chipsOf(s.ApprovalRequest, d.Flags)
	it.Money = moneyOf(s.ApprovalRequest)
	it.Args, it.More = argsOf(d)
	it.For = in.deciders(ctx, s.Deciders)
	if it.Batch = batchable(s, d) == "" && s.State == ringi.Pending; it.Batch {
		it.shape, it.fields = batchKey(s, d), fieldNames(d)
	}
	return it
}

func argsOf(d document) ([]arg, int) {
	const most, wide = 4, 60
	var out []arg
	top := 0
	for _, f := range d.Fields {
		if f.Depth > 0 || f.Path == "" {
			continue
		}
		if top++; len(out) == most {
			continue
		}
		v := f.Value.Text
		switch {
		case f.Value.Masked:
			v = mask.Mark
		case composite(f.raw):
			v = f.Type
		}
		v = escape.Line(v)
		if n := utf8.RuneCountInString(v); n > wide {
			v = cut(v, wide) + "… (" + plural(n, "character") + ")"
		}
		out = append(out, arg{f.Name, v, f.Value.Masked})
	}
	return out, top - len(out)
}

// fieldNames are the names of an input's fields in a few characters.
func fieldNames(d document) string {
	var names []string
	for _, f := range d.Fields {
		if f.Depth == 0 && f.Path != "" {
			names = append(names, f.Name)
		}
	}
	return cut(strings.Join(names, ", "), 60)
}

// deciders says who may decide.
func (in *inbox) deciders(ctx context.Context, d ringi.Deciders) string {
	if d.IsZero() {
		return "any approver"
	}
	var names []string
	for _, id := range d.People {
		names = append(names, in.nameOf(ctx, id))
	}
	for _, t := range d.Teams {
		names = append(names, "team "+t)
	}
	return escape.Line(strings.Join(names, ", "))
}

// group finds calls of one tool and shape of which several stand on the page.
func (b *listBody) group(base string) {
	found := map[string]*group{}
	ids := map[string][]string{}
	var order []string
	tools := map[string]int{}
	for _, it := range b.Items {
		if !it.Batch {
			continue
		}
		b.Batch = true
		if found[it.shape] == nil {
			found[it.shape] = &group{Tool: it.Sentence.Tool, Fields: it.fields}
			order = append(order, it.shape)
		}
		ids[it.shape] = append(ids[it.shape], it.ID)
	}
	for _, shape := range order {
		if g, list := found[shape], ids[shape]; len(list) > 1 {
			list = list[:min(len(list), maxBatch)]
			g.Count, g.Href = len(list), base+"/batch?"+url.Values{"id": list}.Encode()
			b.Groups = append(b.Groups, *g)
			tools[g.Tool]++
		}
	}
	for i := range b.Groups {
		if g := &b.Groups[i]; tools[g.Tool] == 1 {
			g.Fields = "" // the tool alone tells it from the others
		}
	}
}

// waiting counts what waits for somebody, up to 100; -1 where this service does
// not count.
func (in *inbox) waiting(ctx context.Context, who access.Who) int {
	counter, ok := in.service.(ringi.RequestCounter)
	if !ok || who.Principal.IsZero() || !who.Has(access.RoleApprover) {
		return -1
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	n, err := counter.RequestCount(ctx, ringi.RequestQuery{For: who.Principal}, maxCount+1)
	if err != nil {
		in.log.Warn("count what waits", "error", err)
		return -1
	}
	return n
}

// maxCount is how many waiting requests are counted one by one; more are "99+".
const maxCount = 99
