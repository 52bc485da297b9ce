package inbox

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/url"
	"slices"
	"strings"
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
	Whose string // me, teams, all
	Query string
	Tool  string
	Tabs  []tab
	Views []tab
	Items []item
	// Next continues the list; Cut: not all of it could be looked through.
	Next string
	Cut  bool
	// Groups are tools of which several requests can be decided together.
	Groups  []group
	Refresh bool
	// Ask is the list's own address without the page.
	Recent int
}

type group struct {
	Tool  string
	Count int
	Href  string
}

// item is a request in a list.
type item struct {
	ID       string
	Sentence sentence
	State    ringi.RequestState
	Word     string
	Chips    []chip
	Args     []arg
	More     int
	Full     bool
	For      string
	By       string
	R        ringi.ApprovalRequest
	Batch    bool
}

// arg is an argument of a call in a few characters; the request's page has it
// whole.
type arg struct{ Name, Value string }

func (in *inbox) list(w http.ResponseWriter, r *http.Request, who access.Who) error {
	q := r.URL.Query()
	b := listBody{State: q.Get("state"), Whose: q.Get("show"), Query: cut(strings.TrimSpace(q.Get("q")), 200), Tool: q.Get("tool"), Recent: recentRuns}
	if !slices.Contains([]string{"decided", "expired"}, b.State) {
		b.State = "pending"
	}
	if !slices.Contains([]string{"teams", "all"}, b.Whose) {
		b.Whose = "me"
	}
	in.listTabs(&b)
	p := page{Name: "list", Title: "Pending", Count: -1}
	if q.Get("refresh") == "1" {
		b.Refresh, p.Refresh = true, 30
	}
	var err error
	switch b.State {
	case "pending":
		err = in.pendingItems(r.Context(), who, &b, q.Get("after"))
		p.Count = len(b.Items)
	case "decided":
		p.Title = "Decided"
		err = in.settledItems(r.Context(), who, &b, ringi.Granted, ringi.Spent, ringi.Refused)
	default:
		p.Title = "Expired and withdrawn"
		err = in.settledItems(r.Context(), who, &b, ringi.Expired, ringi.Withdrawn)
	}
	if err != nil {
		return err
	}
	p.Flash = in.flashOf(r, who)
	p.Body = b
	return in.show(w, http.StatusOK, who, p)
}

func (in *inbox) listTabs(b *listBody) {
	at := func(state, whose string) string {
		v := url.Values{}
		if state != "pending" {
			v.Set("state", state)
		}
		if whose != "me" {
			v.Set("show", whose)
		}
		if b.Query != "" {
			v.Set("q", b.Query)
		}
		if len(v) == 0 {
			return in.base + "/"
		}
		return in.base + "/?" + v.Encode()
	}
	for _, s := range [][2]string{{"pending", "Pending"}, {"decided", "Decided"}, {"expired", "Expired"}} {
		b.Tabs = append(b.Tabs, tab{s[1], at(s[0], b.Whose), s[0] == b.State})
	}
	for _, s := range [][2]string{{"me", "For me"}, {"teams", "My teams"}, {"all", "All"}} {
		b.Views = append(b.Views, tab{s[1], at(b.State, s[0]), s[0] == b.Whose})
	}
}

// pendingItems reads pages of the store's list, oldest first, until it has one
// of its own.
func (in *inbox) pendingItems(ctx context.Context, who access.Who, b *listBody, after string) error {
	agents := map[string]string{}
	for range scanPages {
		p, err := in.service.Requests(ctx, ringi.RequestQuery{Limit: pageOf, After: after})
		if err != nil {
			return err
		}
		for i, r := range p.Requests {
			agent, err := in.agentOf(ctx, agents, r.RunID)
			if err != nil {
				return err
			}
			s := in.stands(who, r, agent)
			if !s.may(who, access.ApprovalsList) || !b.takes(who, s) {
				continue
			}
			b.Items = append(b.Items, in.itemOf(ctx, s))
			if len(b.Items) == pageOf && (p.Next != "" || i+1 < len(p.Requests)) {
				b.Next = in.nextPage(b, r.ID)
				b.group(in.base)
				return nil
			}
		}
		if after = p.Next; after == "" {
			b.group(in.base)
			return nil
		}
	}
	b.Cut, b.Next = true, in.nextPage(b, after)
	b.group(in.base)
	return nil
}

func (in *inbox) nextPage(b *listBody, after string) string {
	v := url.Values{"show": {b.Whose}, "after": {after}}
	if b.Query != "" {
		v.Set("q", b.Query)
	}
	if b.Tool != "" {
		v.Set("tool", b.Tool)
	}
	return in.base + "/?" + v.Encode()
}

func (in *inbox) agentOf(ctx context.Context, known map[string]string, run string) (string, error) {
	if name, ok := known[run]; ok {
		return name, nil
	}
	row, err := in.service.Row(ctx, run)
	known[run] = row.Agent
	return row.Agent, err
}

// takes reports whether the list's filters take a request.
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
	if b.Tool != "" && s.Tool.Name != b.Tool {
		return false
	}
	if b.Query == "" {
		return true
	}
	hay := s.Tool.Name + "\n" + s.agent + "\n" + s.ID + "\n" + s.RunID
	if s.full {
		for _, f := range showJSON(string(s.Call.Input), maskerOf(s.ApprovalRequest)).Fields {
			if !f.Value.Masked {
				hay += "\n" + f.Value.Text
			}
		}
	}
	return strings.Contains(strings.ToLower(hay), strings.ToLower(b.Query))
}

func (in *inbox) itemOf(ctx context.Context, s seen) item {
	it := item{ID: s.ID, Sentence: sentenceOf(s.ApprovalRequest, s.agent), State: s.State, Word: stateWord(s.State), Full: s.full, R: s.ApprovalRequest,
		By: in.nameOf(ctx, s.DecidedBy)}
	if !s.full {
		return it
	}
	d := showJSON(string(s.Call.Input), maskerOf(s.ApprovalRequest))
	it.Chips = chipsOf(s.ApprovalRequest, d.Flags)
	it.Args, it.More = argsOf(d)
	it.For = in.deciders(ctx, s.Deciders)
	it.Batch = batchable(s, d) == ""
	return it
}

func argsOf(d document) ([]arg, int) {
	const most, wide = 4, 60
	var out []arg
	for _, f := range d.Fields {
		if f.Depth > 0 || f.Path == "" {
			continue
		}
		if len(out) == most {
			return out, len(d.Fields) - most
		}
		v := f.Value.Text
		switch {
		case f.Value.Masked:
			v = mask.Mark
		case composite(f.raw):
			v = f.Type
		}
		v = escape.Line(v)
		if utf8.RuneCountInString(v) > wide {
			v = cut(v, wide) + "… (" + plural(utf8.RuneCountInString(v), "character") + ")"
		}
		out = append(out, arg{f.Name, v})
	}
	return out, 0
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

// group finds tools of which several requests stand on the page.
func (b *listBody) group(base string) {
	count := map[string][]string{}
	var order []string
	for _, it := range b.Items {
		if !it.Batch {
			continue
		}
		key := it.Sentence.Tool
		if count[key] == nil {
			order = append(order, key)
		}
		count[key] = append(count[key], it.ID)
	}
	for _, tool := range order {
		if ids := count[tool]; len(ids) > 1 {
			b.Groups = append(b.Groups, group{tool, min(len(ids), maxBatch), base + "/batch?" + url.Values{"id": ids[:min(len(ids), maxBatch)]}.Encode()})
		}
	}
}

func (in *inbox) settledItems(ctx context.Context, who access.Who, b *listBody, states ...ringi.RequestState) error {
	notes, err := in.decided(ctx, who, states)
	if err != nil {
		return err
	}
	for _, n := range notes {
		s := in.stands(who, n.ApprovalRequest, n.agent)
		switch {
		case b.Whose == "me" && n.DecidedBy != who.Principal.ID && s.owner&access.Asked == 0,
			b.Whose == "teams" && !slices.ContainsFunc(s.Deciders.Teams, func(t string) bool { return slices.Contains(who.Principal.Teams, t) }),
			b.Tool != "" && n.Tool.Name != b.Tool,
			b.Query != "" && !strings.Contains(strings.ToLower(n.Tool.Name+"\n"+n.agent+"\n"+n.ID+"\n"+n.RunID), strings.ToLower(b.Query)):
			continue
		}
		if len(b.Items) == 4*pageOf {
			b.Cut = true
			break
		}
		it := item{ID: n.ID, Sentence: sentenceOf(n.ApprovalRequest, n.agent), State: n.State, Word: stateWord(n.State), R: n.ApprovalRequest, By: in.nameOf(ctx, n.DecidedBy)}
		it.Sentence.Rest = ""
		b.Items = append(b.Items, it)
	}
	return nil
}

func digestOf(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}
