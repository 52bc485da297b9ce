// Package evidence reads docs/evidence.md, and what the repository holds to
// show it with: its tests, and the scripts of its command. Only its own test
// uses it.
package evidence

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// row is one line of a table: what must hold, where that was learnt, and what
// shows it.
type row struct {
	line    int
	ids     []string // one, or the members of a range such as B47–B66
	holds   string
	source  string
	tests   []string // as they stand in backquotes
	notHere string   // the reason behind "not here:", empty where none is given
}

// header is the first line of every table that is read. Others are not looked
// at.
const header = "| id | what must hold | source | shown by |"

// readRows reads every table under header. A line that is no row of four cells
// is an error: a row that is not read would not be checked either.
func readRows(text string) ([]row, error) {
	var rows []row
	inside := false
	for i, line := range strings.Split(text, "\n") {
		switch {
		case strings.TrimSpace(line) == header:
			inside = true
			continue
		case !strings.HasPrefix(line, "|"):
			inside = false
		case inside && strings.HasPrefix(line, "|---"):
			continue
		}
		if !inside {
			continue
		}
		r, err := readRow(line)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", i+1, err)
		}
		r.line = i + 1
		rows = append(rows, r)
	}
	return rows, nil
}

var quoted = regexp.MustCompile("`([^`]*)`")

func readRow(line string) (row, error) {
	line, ok := strings.CutSuffix(strings.TrimSpace(line), "|")
	if !ok {
		return row{}, fmt.Errorf("row does not end with a bar: %q", line)
	}
	// A bar that belongs to a cell is written \|.
	const bar = "\x00"
	cells := strings.Split(strings.ReplaceAll(strings.TrimPrefix(line, "|"), `\|`, bar), "|")
	if len(cells) != 4 {
		return row{}, fmt.Errorf("row has %d cells, want 4", len(cells))
	}
	for i, c := range cells {
		cells[i] = strings.TrimSpace(strings.ReplaceAll(c, bar, "|"))
	}
	shown, notHere, _ := strings.Cut(cells[3], "not here:")
	r := row{holds: cells[1], source: cells[2], notHere: strings.TrimSpace(notHere)}
	for _, m := range quoted.FindAllStringSubmatch(shown, -1) {
		r.tests = append(r.tests, m[1])
	}
	var err error
	r.ids, err = expand(cells[0])
	return r, err
}

var ranged = regexp.MustCompile(`^([A-Z]+-?)(\d+)–([A-Z]+-?)(\d+)$`)

// expand gives the members of "B47–B66", and any other id as it is. Numbers
// keep the width of the first.
func expand(id string) ([]string, error) {
	if id == "" {
		return nil, fmt.Errorf("row has no id")
	}
	m := ranged.FindStringSubmatch(id)
	if m == nil {
		return []string{id}, nil
	}
	from, err1 := strconv.Atoi(m[2])
	to, err2 := strconv.Atoi(m[4])
	if err1 != nil || err2 != nil || m[1] != m[3] || to <= from {
		return nil, fmt.Errorf("%q is no range", id)
	}
	var ids []string
	for n := from; n <= to; n++ {
		ids = append(ids, fmt.Sprintf("%s%0*d", m[1], len(m[2]), n))
	}
	return ids, nil
}

var numbers = regexp.MustCompile(`^(F|B|S|E)(\d+)$`)

// idsOf are the ids that a test's name carries: TestB18_B19_X shows B18 and
// B19, TestS03_X shows S-03.
func idsOf(name string) []string {
	var ids []string
	for _, kind := range []string{"Test", "Fuzz", "Benchmark"} {
		rest, ok := strings.CutPrefix(name, kind)
		if !ok {
			continue
		}
		for _, part := range strings.Split(rest, "_") {
			m := numbers.FindStringSubmatch(part)
			if m == nil {
				break
			}
			switch m[1] {
			case "S":
				ids = append(ids, "S-"+m[2])
			case "E":
				ids = append(ids, "E-"+strings.TrimLeft(m[2], "0"))
			default:
				ids = append(ids, part)
			}
		}
	}
	return ids
}
