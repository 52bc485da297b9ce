package inbox

import (
	"net/http"
	"slices"
	"time"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/access"
	"github.com/ringi-dev/ringi/internal/escape"
)

// hasty is the time below which nobody can have read a request.
const hasty = 2 * time.Second

type dayBody struct {
	Date                               string
	Decided, Approved, Denied, Expired int
	Hasty, HastyShare                  int
	Median                             string
	Waiting                            int
	Tools                              []dayTool
	Recent                             int
}

type dayTool struct {
	Tool                      string
	Approved, Denied, Expired int
}

// day shows the numbers of the day (UTC) over all that somebody may see. They
// are of the team: nobody is named.
func (in *inbox) day(w http.ResponseWriter, r *http.Request, who access.Who) error {
	runs, err := in.recent(r.Context(), nil, recentRuns)
	if err != nil {
		return err
	}
	today := in.now().UTC().Truncate(24 * time.Hour)
	b := dayBody{Date: today.Format("2 January 2006"), Recent: recentRuns}
	tools := map[string]*dayTool{}
	var took []time.Duration
	for _, run := range runs {
		for _, n := range run.notes {
			if !in.stands(who, n.ApprovalRequest, n.agent).may(who, access.ApprovalsList) {
				continue
			}
			if n.State == ringi.Pending {
				b.Waiting++
				continue
			}
			if n.settledAt().Before(today) {
				continue
			}
			t := tools[n.Tool.Name]
			if t == nil {
				t = &dayTool{Tool: escape.Line(n.Tool.Name)}
				tools[n.Tool.Name] = t
			}
			switch n.State {
			case ringi.Granted, ringi.Spent:
				b.Approved, t.Approved = b.Approved+1, t.Approved+1
			case ringi.Refused:
				b.Denied, t.Denied = b.Denied+1, t.Denied+1
			case ringi.Expired:
				b.Expired, t.Expired = b.Expired+1, t.Expired+1
				continue
			default:
				continue
			}
			d := n.DecidedAt.Sub(n.CreatedAt)
			took = append(took, d)
			if d < hasty {
				b.Hasty++
			}
		}
	}
	b.Decided = len(took)
	if b.Decided > 0 {
		slices.Sort(took)
		b.Median, b.HastyShare = spoken(took[len(took)/2]), 100*b.Hasty/b.Decided
	}
	for _, t := range tools {
		if t.Approved+t.Denied+t.Expired > 0 {
			b.Tools = append(b.Tools, *t)
		}
	}
	slices.SortFunc(b.Tools, func(x, y dayTool) int {
		if d := y.Approved + y.Denied - x.Approved - x.Denied; d != 0 {
			return d
		}
		return compareText(x.Tool, y.Tool)
	})
	return in.show(w, http.StatusOK, who, page{Name: "day", Title: "The day in numbers", Count: -1, Body: b})
}
