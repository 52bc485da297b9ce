package main

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/ringi-dev/ringi/internal/escape"
)

// painter writes a page of facts and framed foreign text for a terminal or a
// pipe. Foreign text stands behind a bar on every line of the screen, so that
// none of it can pass for a fact.
type painter struct {
	buf    bytes.Buffer
	colour bool
	width  int // columns; 0 does not fold
}

// paints returns a painter for a stream.
func (e *env) paints(w io.Writer) *painter {
	p := &painter{colour: e.colours(w)}
	if isTerminal(w) {
		p.width = width(w)
	}
	return p
}

// flush writes the page in one piece.
func (p *painter) flush(w io.Writer) error {
	if _, err := w.Write(p.buf.Bytes()); err != nil {
		return fmt.Errorf("write answer: %w", err)
	}
	p.buf.Reset()
	return nil
}

// The colours (ECMA-48, SGR), used for our own words only.
const (
	bold   = "1"
	red    = "31"
	green  = "32"
	yellow = "33"
	faint  = "2"
)

// in colours a text of this program's own.
func (p *painter) in(colour, s string) plain {
	if !p.colour {
		return plain(s)
	}
	return plain("\x1b[" + colour + "m" + s + "\x1b[0m")
}

// put writes a sentence of ours, its arguments escaped.
func (p *painter) put(format string, args ...any) { fmt.Fprintf(&p.buf, format, escaped(args)...) }

// head begins a section.
func (p *painter) head(title string) { p.put("\n%s\n", p.in(bold, title)) }

// fact writes a name and a value on one line, folded like a frame.
func (p *painter) fact(name, format string, args ...any) {
	text := fmt.Sprintf(format, escaped(args)...)
	p.fold(fmt.Sprintf("  %-10s ", name), strings.Repeat(" ", 13), text)
}

const (
	barLine = "  │ " // a line of the text
	barFold = "  ┊ " // the same line, folded here because the screen is narrow
)

// frame shows foreign text in full: escaped, behind a bar, folded where the
// screen is narrower than a line.
func (p *painter) frame(s string) {
	for line := range strings.SplitSeq(escape.Text(s), "\n") {
		p.fold(barLine, barFold, line)
	}
}

// fold writes a line, broken where the terminal would break it without a bar.
func (p *painter) fold(first, next, line string) { p.foldIn(first, columns(first), next, line) }

// foldIn is fold with a beginning that takes another number of columns than it
// has characters: it is coloured. next takes as many.
func (p *painter) foldIn(first string, taken int, next, line string) {
	if line == "" {
		first = strings.TrimRight(first, " ")
	}
	line = strings.ReplaceAll(line, "\t", "    ") // a terminal's own stops depend on the bar
	room := p.width - taken
	if p.width == 0 || columns(line) <= room {
		p.buf.WriteString(first + line + "\n")
		return
	}
	used := 0
	p.buf.WriteString(first)
	for _, r := range line {
		if n := runeColumns(r); used+n > room {
			p.buf.WriteString("\n" + next)
			used = 0
		}
		p.buf.WriteRune(r)
		used += runeColumns(r)
	}
	p.buf.WriteByte('\n')
}

// columns is how many columns a text takes at most.
func columns(s string) int {
	n := 0
	for _, r := range s {
		n += runeColumns(r)
	}
	return n
}

// runeColumns is an upper bound: a line may be folded early, never late.
func runeColumns(r rune) int {
	if r < 0x2E80 && r != 0x203C && !(r >= 0x2190 && r < 0x2500) && !(r >= 0x2580) {
		return 1
	}
	return 2
}

// size says how much text there is, so that a tail out of sight is missed.
func size(s string) plain {
	lines := strings.Count(s, "\n") + 1
	text := count(len(s), "byte")
	if lines > 1 {
		text += ", " + count(lines, "line")
	}
	if n := utf8.RuneCountInString(s); n != len(s) && utf8.ValidString(s) {
		text += ", " + count(n, "character")
	}
	return plain(text)
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
