package sqlite

import (
	"encoding/hex"
	"encoding/json"
	"hash/fnv"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/ringi-dev/ringi"
)

// Terms are what request_terms indexes: words of letters and digits alone, so
// that nothing a person types is ever an operator of FTS5. Each begins with the
// space and a class. A column's term ends with a hash of the value; a piece's
// with the hexadecimal bytes of up to three characters of the text, so that the
// terms that begin with one or two characters are found by a prefix. What terms
// find is held against the row: two values may share a hash.
const (
	termTool      = 't'
	termAgent     = 'a'
	termKind      = 'k'
	termInitiator = 'i'
	termPerson    = 'p'
	termTeam      = 'm'
	termAnybody   = 'n'
	termRisk      = 'r' // medium and low alone: high is what has neither
	termPiece     = 'x'
)

// appendTerms appends the terms of a row, blanks between them.
func appendTerms(dst []byte, r *ringi.RequestRow) []byte {
	space := spaceTerm(r.Space)
	column := func(class byte, value string) {
		dst = append(appendColumn(dst, space, class, value), ' ')
	}
	column(termTool, r.Tool)
	column(termAgent, r.Agent)
	column(termKind, string(r.Kind))
	column(termInitiator, r.Initiator)
	if risk := r.Risk.OrHigh(); risk != ringi.RiskHigh {
		column(termRisk, string(risk))
	}
	for _, p := range r.People {
		column(termPerson, p)
	}
	for _, team := range r.Teams {
		column(termTeam, team)
	}
	if len(r.People)+len(r.Teams) == 0 {
		column(termAnybody, "")
	}
	for _, p := range pieces(r.Text) {
		dst = append(appendPiece(dst, space, p.text()), ' ')
	}
	return dst
}

// piece is up to three characters, packed: 21 bits each, each plus one.
type piece uint64

// pieces are the runs of three characters in the words of a text, and the last
// two and the last one of each word; each once.
func pieces(text string) []piece {
	out := make([]piece, 0, len(text))
	for word := range strings.FieldsSeq(text) {
		var p piece
		n := 0
		for _, r := range word {
			if p, n = p<<21&(1<<63-1)|piece(r+1), n+1; n >= 3 {
				out = append(out, p)
			}
		}
		if n >= 2 {
			out = append(out, p&(1<<42-1))
		}
		out = append(out, p&(1<<21-1))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func (p piece) text() string {
	var room [12]byte
	b := room[:0]
	for shift := 42; shift >= 0; shift -= 21 {
		if r := p >> shift & (1<<21 - 1); r != 0 {
			b = append(b, string(rune(r-1))...)
		}
	}
	return string(b)
}

func appendPiece(dst []byte, space, text string) []byte {
	return hex.AppendEncode(append(append(dst, space...), termPiece), []byte(text))
}

func appendColumn(dst []byte, space string, class byte, value string) []byte {
	h := fnv.New64a()
	h.Write([]byte(value))
	return hex.AppendEncode(append(append(dst, space...), class), h.Sum(nil))
}

// spaceTerm stands for a space: four letters or digits.
func spaceTerm(space string) string {
	h := fnv.New32a()
	h.Write([]byte(space))
	return hex.EncodeToString(h.Sum(nil)[:2])
}

const (
	// mostPieces bounds the pieces that a search asks for: those of a long one
	// are spread over it, and the rows are held against all of it.
	mostPieces = 24
	// mostTeams is up to how many teams the terms are asked.
	mostTeams = 100
)

// termsOf are the terms of FTS5 that every row of q has: the pieces of each of
// the search's words, and the rest. What is found by its beginning alone, the
// words of one or two characters, is not among them: see beginning.
func termsOf(q ringi.RequestQuery) (words [][]string, rest []string) {
	space := spaceTerm(q.Space)
	column := func(class byte, value string) string { return string(appendColumn(nil, space, class, value)) }
	for _, c := range []struct {
		class byte
		value string
	}{{termInitiator, q.Initiator}, {termTool, q.Tool}, {termAgent, q.Agent}, {termKind, string(q.Kind)}} {
		if c.value != "" {
			rest = append(rest, column(c.class, c.value))
		}
	}
	asked := q.Words()
	for _, word := range asked {
		if utf8.RuneCountInString(word) < 3 {
			continue
		}
		all := threes(word)
		var list []string
		for i, step := 0, max(1, len(asked)*len(all)/mostPieces); i < len(all); i += step {
			list = append(list, string(appendPiece(nil, space, all[i].text())))
		}
		words = append(words, list)
	}
	if p := q.For; (p.ID != "" || len(p.Teams) > 0) && len(p.Teams) <= mostTeams {
		some := []string{column(termAnybody, "")}
		if p.ID != "" {
			some = append(some, column(termPerson, p.ID))
		}
		for _, team := range p.Teams {
			some = append(some, column(termTeam, team))
		}
		rest = append(rest, "("+strings.Join(some, " OR ")+")")
	}
	if risk := riskOf(&q); risk != "" && q.Risk.OrHigh() != ringi.RiskHigh {
		rest = append(rest, column(termRisk, risk))
	}
	return words, rest
}

// riskiest narrows terms to the highest risk where that is asked for: to what
// has no other. Alone there would be nothing to take away from.
func riskiest(q *ringi.RequestQuery, terms string) string {
	if q.Risk == "" || q.Risk.OrHigh() != ringi.RiskHigh || terms == "" {
		return terms
	}
	space := spaceTerm(q.Space)
	lower := func(r ringi.Risk) string { return string(appendColumn(nil, space, termRisk, string(r))) }
	return "(" + terms + ") NOT (" + lower(ringi.RiskMedium) + " OR " + lower(ringi.RiskLow) + ")"
}

// beginning is the term for all that begin with a word of one or two characters.
func beginning(space, word string) string {
	return string(appendPiece(nil, spaceTerm(space), word)) + "*"
}

// threes are the pieces of three characters of a word.
func threes(word string) []piece {
	return slices.DeleteFunc(pieces(word), func(p piece) bool { return p>>42 == 0 })
}

// jsonList is a list as a column keeps it.
func jsonList(list []string) string {
	if len(list) == 0 {
		return ""
	}
	b, _ := json.Marshal(list) // strings: it cannot fail
	return string(b)
}

// jsonText is a text as it stands in such a list.
func jsonText(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

// texts is a column of a JSON list; "" is nil.
type texts []string

// Scan reads the column.
func (t *texts) Scan(src any) error {
	*t = nil
	s, _ := src.(string)
	if s == "" {
		return nil
	}
	return json.Unmarshal([]byte(s), (*[]string)(t))
}
