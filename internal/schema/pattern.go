package schema

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/ringi-dev/ringi/internal/strictjson"
)

// Go's regular expressions match in linear time, but compiling one can take
// seconds: a{1000} is a thousand instructions, and \pL is 650 ranges of
// characters. These limits keep a document's patterns within some 50 ms.
const (
	maxPatternBytes   = 1 << 10  // one pattern
	maxPatternWeight  = 64 << 10 // all of a document, a class like \pL counting as 64 bytes
	maxPatternProgram = 20_000   // instructions of all patterns of a document
	classWeight       = 64
)

// patterns are the compiled patterns of one document. After compiling it is
// only read.
type patterns struct {
	compiled map[string]pattern
	weight   int
	program  int
}

type pattern struct {
	re   *regexp.Regexp
	size int // estimated instructions
}

func newPatterns() *patterns { return &patterns{compiled: map[string]pattern{}} }

// add compiles a pattern of the schema at the pointer at.
func (p *patterns) add(text, at string) error {
	if _, ok := p.compiled[text]; ok {
		return nil
	}
	p.weight += len(text) + classWeight*(strings.Count(text, `\p`)+strings.Count(text, `\P`))
	if p.weight > maxPatternWeight {
		return &CompileError{Kind: KindPattern, Path: cutPath(at), detail: "the patterns of the schema are too long together"}
	}
	compiled, err := compilePattern(text, maxPatternProgram-p.program)
	if err != nil {
		return &CompileError{Kind: KindPattern, Path: cutPath(at), detail: "the pattern " + strictjson.Excerpt(text, excerptBytes) + " is not taken: " + strictjson.Excerpt(err.Error(), 120), err: err}
	}
	p.program += compiled.size
	p.compiled[text] = compiled
	return nil
}

// engine gives the validator the patterns that were compiled before. Others
// come up only where draft-07 checks that a value is itself a pattern.
func (p *patterns) engine(text string) (jsonschema.Regexp, error) {
	if compiled, ok := p.compiled[text]; ok {
		return compiled.re, nil
	}
	if strings.Count(text, `\p`)+strings.Count(text, `\P`) > 8 {
		return nil, fmt.Errorf("too many character classes")
	}
	compiled, err := compilePattern(text, 1000)
	if err != nil {
		return nil, err
	}
	return compiled.re, nil
}

func compilePattern(text string, room int) (pattern, error) {
	if len(text) > maxPatternBytes {
		return pattern{}, fmt.Errorf("it is longer than %d bytes", maxPatternBytes)
	}
	tree, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return pattern{}, err
	}
	size := 2 + programSize(tree)
	if size > room {
		return pattern{}, fmt.Errorf("written out, its repetitions are too long")
	}
	re, err := regexp.Compile(text)
	return pattern{re: re, size: size}, err
}

// programSize estimates the instructions of a pattern from above, without
// writing out its repetitions. The parser bounds nesting and counts.
func programSize(re *syntax.Regexp) int {
	n := 0
	for _, sub := range re.Sub {
		n = min(n+programSize(sub), maxEstimate)
	}
	switch re.Op {
	case syntax.OpConcat:
		return n
	case syntax.OpAlternate:
		return n + len(re.Sub)
	case syntax.OpLiteral:
		return n + len(re.Rune)
	case syntax.OpCapture, syntax.OpStar, syntax.OpPlus, syntax.OpQuest:
		return n + 2
	case syntax.OpRepeat:
		return min((n+2)*max(re.Min+1, re.Max), maxEstimate)
	}
	return n + 1
}

// maxEstimate keeps the estimate away from overflow.
const maxEstimate = 1 << 24
