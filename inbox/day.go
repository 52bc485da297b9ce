package inbox

import (
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/access"
	"github.com/ringi-dev/ringi/internal/escape"
)

type dayBody struct {
	Date              string
	Decided           int
	Sum               ringi.ToolTally
	Hasty, HastyShare int
	Median            string
	// Waiting is in words: the store counts up to 1,000.
	Waiting string
	Tools   []ringi.ToolTally
	// Before and After are days; After is empty for today.
	Before, After string
	Today         bool
	// Team says that they are the numbers of all that is to be seen, and not of
	// what somebody asked for.
	Team bool
}

var errNoCount = errors.New("this inbox's service counts nothing")

// day shows the numbers of a day (UTC) over all that somebody may see. They are
// of the team: nobody is named.
func (in *inbox) day(w http.ResponseWriter, r *http.Request, who access.Who) error {
	counter, ok := in.service.(ringi.RequestCounter)
	if !ok {
		return errNoCount
	}
	today := in.now().UTC().Truncate(24 * time.Hour)
	day := today
	if text := r.URL.Query().Get("date"); text != "" {
		var err error
		if day, err = time.Parse(time.DateOnly, text); err != nil || day.After(today) {
			return ringi.ErrNotFound
		}
	}
	var q ringi.RequestQuery
	narrow(who, &q)
	tally, err := counter.RequestTally(r.Context(), q, day, day.AddDate(0, 0, 1))
	if err != nil {
		return err
	}
	waiting, err := counter.RequestCount(r.Context(), q, 1000)
	if err != nil {
		return err
	}
	b := dayBody{Date: day.Format("Monday, 2 January 2006"), Today: day.Equal(today), Tools: tally.Tools, Sum: tally.Sum(), Hasty: tally.Hasty,
		Waiting: grouped(waiting), Before: day.AddDate(0, 0, -1).Format(time.DateOnly), Team: q.Initiator == ""}
	if waiting == 1000 {
		b.Waiting = "1\u00a0000 or more"
	}
	if !b.Today {
		b.After = day.AddDate(0, 0, 1).Format(time.DateOnly)
	}
	if b.Decided = b.Sum.Approved + b.Sum.Denied; b.Decided > 0 {
		b.Median, b.HastyShare = spoken(tally.Median), 100*b.Hasty/b.Decided
	}
	for i := range b.Tools {
		b.Tools[i].Tool = escape.Line(b.Tools[i].Tool)
	}
	slices.SortStableFunc(b.Tools, func(x, y ringi.ToolTally) int { return y.Approved + y.Denied - x.Approved - x.Denied })
	return in.show(w, http.StatusOK, who, page{Name: "day", Title: "The day in numbers", Body: b})
}
