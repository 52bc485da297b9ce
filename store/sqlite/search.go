package sqlite

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/ringi-dev/ringi"
)

const (
	// fewRows is how many rows are looked at one by one before terms are asked:
	// what many rows have is found among them, and where no more are in these
	// states all is. A word of one or two characters is the beginning of many
	// terms, so that there more rows come first.
	fewRows, moreRows = 500, 2000
	// mostSorted is how many rows are sorted by their deadlines.
	mostSorted = 6000
	// rarePieces is how many pieces of a search the terms are asked for, the
	// rarest; probe is how many rows of each are counted to find those.
	rarePieces, probe = 4, 200
	// sample is how many rows tell how common a word of one or two characters is.
	sample = 500

	// rowsOfATime is how many requests may have one microsecond.
	rowsOfATime = 1 << 11
	// farTime bounds the times that have row numbers of their own: those beyond
	// the year 2112 share the last.
	farTime = 1<<52 - 2
)

// rowNumber is the first row number of a time.
func rowNumber(created int64) int64 {
	return max(min(created, farTime), -farTime) * rowsOfATime
}

// search fills the page behind after: first row by row, then by terms, whose
// rows come in the order of their numbers, that of creation.
func (s *Store) search(ctx context.Context, p *page, after *ringi.RequestRow) error {
	few := fewRows
	if slices.ContainsFunc(p.q.Words(), func(w string) bool { return utf8.RuneCountInString(w) < 3 }) {
		few = moreRows
	}
	last, err := s.walk(ctx, p, after, few)
	if err != nil || last == nil || p.full() {
		return err
	}
	terms, err := s.rarest(ctx, p.q)
	if err != nil {
		return err
	}
	terms = riskiest(p.q, terms)
	if terms != "" && p.q.Order != ringi.SoonestFirst {
		return s.byTerms(ctx, p, terms, last)
	}
	found := mostSorted + 1
	if terms != "" { // it is empty for too many teams alone
		err := s.read.QueryRowContext(ctx, `SELECT count(*) FROM (SELECT 1 FROM request_terms WHERE request_terms MATCH ? LIMIT ?)`,
			terms, mostSorted+1).Scan(&found)
		if err != nil {
			return fmt.Errorf("count rows of terms: %w", err)
		}
	}
	if found == 0 {
		return nil
	}
	if found > mostSorted { // the soonest of so many are not far
		_, err := s.walk(ctx, p, last, math.MaxInt32)
		return err
	}
	return s.sorted(ctx, p, terms, last)
}

// byTerms adds the rows that the terms find behind a row, in the order of
// creation. Rows of one microsecond come in no order: they are read to their
// last, and sorted.
func (s *Store) byTerms(ctx context.Context, p *page, terms string, behind *ringi.RequestRow) error {
	query, args := termsQuery(p.q, terms, behind)
	down := ``
	if p.q.Order == ringi.NewestFirst {
		down = ` DESC`
	}
	p.byNumber = true
	err := s.collect(ctx, p, behind, `SELECT `+requestColumns+`, iif(state = 'pending' AND expires_at <= ?, 'expired', state)`+query+
		` ORDER BY request_terms.rowid`+down, append([]any{s.now()}, args...))
	slices.SortFunc(p.rows, func(a, b ringi.RequestRow) int { return p.q.Compare(&a, &b) })
	p.rows = p.rows[:min(len(p.rows), p.limit)]
	return err
}

// sorted adds the rows that the terms find behind a row, sorted by deadline
// before they are read.
func (s *Store) sorted(ctx context.Context, p *page, terms string, behind *ringi.RequestRow) error {
	query, args := termsQuery(p.q, terms, behind)
	return s.collect(ctx, p, behind, `SELECT `+requestColumns+`, iif(state = 'pending' AND expires_at <= ?, 'expired', state)
		FROM (SELECT n AS m`+query+` ORDER BY deadline, created_at, id LIMIT ?) CROSS JOIN requests ON n = m`,
		append(append([]any{s.now()}, args...), mostSorted))
}

// termsQuery finds rows by terms. The oldest pending request bounds those that
// can be pending, so that older ones that are settled are passed over unseen.
// What it selects stands before it, and the order behind it.
func termsQuery(q *ringi.RequestQuery, terms string, behind *ringi.RequestRow) (string, []any) {
	var stored []string
	states := statesOf(*q)
	for _, state := range states {
		stored = append(stored, `'`+string(known(state))+`'`)
		if state == ringi.Expired {
			stored = append(stored, `'pending'`)
		}
	}
	where, args := ` WHERE request_terms MATCH ?`, []any{terms}
	switch {
	case q.Order == ringi.SoonestFirst:
	case q.Order == ringi.NewestFirst:
		where, args = where+` AND request_terms.rowid < ?`, append(args, rowNumber(behind.CreatedAt.UnixMicro())+rowsOfATime)
	default:
		where, args = where+` AND request_terms.rowid >= ?`, append(args, rowNumber(behind.CreatedAt.UnixMicro()))
	}
	if len(states) == 1 && states[0] == ringi.Pending && q.Order != ringi.OldestFirst {
		where += ` AND request_terms.rowid >= (SELECT n FROM requests WHERE space = ? AND state = 'pending' ORDER BY created_at, id LIMIT 1)`
		args = append(args, q.Space)
	}
	tests, testArgs := conditions(q)
	return ` FROM request_terms CROSS JOIN requests ON requests.n = request_terms.rowid` + where +
		` AND state IN (` + strings.Join(stored, ", ") + `)` + tests, append(args, testArgs...)
}

// known is a state that there is; "" for another.
func known(s ringi.RequestState) ringi.RequestState {
	switch s {
	case ringi.Pending, ringi.Granted, ringi.Refused, ringi.Expired, ringi.Withdrawn, ringi.Stale, ringi.Spent:
		return s
	}
	return ""
}

// rarest is the query of terms with the rarest pieces of the search alone: a
// piece that nearly every row has costs much and narrows little. How rare one is
// is told by how far its first rows are apart, against how far all are.
func (s *Store) rarest(ctx context.Context, q *ringi.RequestQuery) (string, error) {
	words, terms := termsOf(*q)
	short, err := s.beginnings(ctx, q, len(words)+len(terms) > 0)
	if err != nil {
		return "", err
	}
	if terms = append(terms, short...); len(words) == 0 {
		return strings.Join(terms, " AND "), nil
	}
	every, err := s.apart(ctx, `SELECT n AS rowid FROM requests ORDER BY n LIMIT ?`, probe)
	if err != nil {
		return "", err
	}
	var all []gap
	for i, pieces := range words {
		for _, term := range pieces {
			n, err := s.apart(ctx, `SELECT rowid FROM request_terms WHERE request_terms MATCH ? ORDER BY rowid LIMIT ?`, term, probe)
			if err != nil {
				return "", err
			}
			all = append(all, gap{i, term, n / max(every, 1)})
		}
	}
	slices.SortStableFunc(all, func(a, b gap) int { return cmp.Compare(b.apart, a.apart) })
	return strings.Join(append(rareOf(all), terms...), " AND "), nil
}

// beginnings are the terms of words of one or two characters. One that many rows
// have costs a list of all of them, so that it is left out where something else
// is asked for.
func (s *Store) beginnings(ctx context.Context, q *ringi.RequestQuery, more bool) ([]string, error) {
	var out []string
	for _, word := range q.Words() {
		if utf8.RuneCountInString(word) >= 3 {
			continue
		}
		var of int
		err := s.read.QueryRowContext(ctx, `SELECT count(*) FROM (SELECT text FROM requests ORDER BY n LIMIT ?) WHERE instr(text, ?)`, sample, word).Scan(&of)
		if err != nil {
			return nil, fmt.Errorf("count rows of a word: %w", err)
		}
		if !more || of < sample/50 {
			out, more = append(out, beginning(q.Space, word)), true
		}
	}
	return out, nil
}

// gap says how far the rows of a piece of a word are apart: 1 where every row
// has it.
type gap struct {
	word  int
	term  string
	apart float64
}

// rareOf chooses the rarest piece, that of each word which narrows, and others
// that narrow more.
func rareOf(all []gap) []string {
	chosen, seen := []string{all[0].term}, map[int]bool{all[0].word: true}
	for _, g := range all[1:] {
		first := !seen[g.word] && g.apart > 1.5 && len(seen) <= rarePieces
		if first || g.apart > 4 && len(chosen) < rarePieces {
			chosen, seen[g.word] = append(chosen, g.term), true
		}
	}
	return chosen
}

// apart is the mean distance of the row numbers of a query, which ends with the
// number of rows to look at; infinite where there are fewer.
func (s *Store) apart(ctx context.Context, query string, args ...any) (float64, error) {
	var n, first, last int64
	err := s.read.QueryRowContext(ctx, `SELECT count(*), ifnull(min(rowid), 0), ifnull(max(rowid), 0) FROM (`+query+`)`, args...).
		Scan(&n, &first, &last)
	if err != nil {
		return 0, fmt.Errorf("count rows of a term: %w", err)
	}
	if n < probe {
		return math.Inf(1), nil
	}
	return float64(last-first) / probe, nil
}
