package schema

import (
	"encoding/json"
	"strings"

	"github.com/ringi-dev/ringi/internal/strictjson"
)

// maxWork is how much one check may cost, in steps of about a microsecond. A
// step is one schema applied to one value; what costs more counts more.
// The validator cannot be interrupted, so the cost is found before it starts,
// from above, by walking the value as the validator will. It depends on schema
// and value alone: every process refuses the same.
const maxWork = 100_000

// patternPace is how many of a pattern's instructions times bytes of text make
// a step. The worst patterns that were tried need two thirds of a step.
const patternPace = 200

// load is what the keywords of one schema cost beyond the visit.
type load struct {
	number      int // keywords that make a rational number of the value
	required    int
	choices     int // JSON values in enum and const
	choiceNums  int // numbers among them
	pattern     int // instructions
	length      bool
	format      bool
	regexFormat bool
	unique      bool
}

func (d *document) burden(n *node) load {
	var l load
	for key, v := range n.keywords {
		switch key {
		case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "type":
			l.number++
		case "required":
			l.required = size(v)
		case "enum", "const":
			l.choices += size(v)
			l.choiceNums += numbers(v)
		case "pattern":
			if text, ok := v.(string); ok {
				l.pattern = d.patterns.compiled[text].size
			}
		case "minLength", "maxLength":
			l.length = true
		case "format":
			l.format, l.regexFormat = d.draft7, d.draft7 && v == "regex"
		case "uniqueItems":
			l.unique = v == true
		}
	}
	return l
}

func numbers(v any) int {
	n := 0
	switch v := v.(type) {
	case json.Number:
		n = 1
	case []any:
		for _, item := range v {
			n += numbers(item)
		}
	case map[string]any:
		for _, item := range v {
			n += numbers(item)
		}
	}
	return n
}

// measure refuses a value that would take too long to check, and one that no
// JSON text stands for.
func (d *document) measure(v any) error {
	m := meter{doc: d, left: maxWork}
	switch ok := m.visit(d.root, v, 0, 0); {
	case ok:
		return nil
	case m.foreign:
		return &Error{Kind: KindInvalid, Problems: []Problem{{Message: "the value holds something that is not JSON, or a number that is too long"}}}
	}
	return &Error{Kind: KindWork, Problems: []Problem{{Message: "checking the input against the schema would take too long; send less in one call"}}}
}

type meter struct {
	doc     *document
	left    int
	foreign bool
}

// visit charges for n applied to v at the given depth of the value; chain is
// how many schemas lie between n and the one that v came to first. It returns
// false as soon as nothing is left.
func (m *meter) visit(n *node, v any, depth, chain int) bool {
	if m.left -= 1 + depth/8 + chain/64; m.left < 0 {
		return false
	}
	switch v := v.(type) {
	case string:
		m.left -= n.load.string(len(v))
	case json.Number:
		if m.foreign = m.foreign || !strictjson.ValidNumber(string(v)); m.foreign {
			return false
		}
		m.left -= n.load.digits(string(v))
	case map[string]any, []any, bool, nil:
		m.left -= n.load.choices / 8
	default:
		m.foreign = true
		return false
	}
	for _, next := range n.here {
		if !m.visit(next, v, depth, chain+1) {
			return false
		}
	}
	switch v := v.(type) {
	case map[string]any:
		return m.object(n, v, depth, chain)
	case []any:
		return m.array(n, v, depth)
	}
	return m.left >= 0
}

func (l *load) string(n int) int {
	work := l.choices/8 + n*l.pattern/patternPace
	if l.length {
		work += n / 4096
	}
	if l.format {
		work += 1 + n/32
	}
	if l.regexFormat {
		work += 2000 // a pattern of up to 1,000 instructions is compiled
	}
	return work
}

func (l *load) digits(text string) int {
	each := 1 + len(text)/32
	if strings.ContainsAny(text, "eE") {
		each += 4
	}
	return l.number*each + l.choiceNums*(1+each) + l.choices/8
}

func (m *meter) object(n *node, obj map[string]any, depth, chain int) bool {
	m.left -= len(obj)/16 + n.load.required/16
	if m.doc.uneval {
		m.left -= len(obj) / 4 // each schema keeps a list of what is left over
	}
	for name, next := range n.dependent {
		if _, ok := obj[name]; ok && !m.visit(next, obj, depth, chain+1) {
			return false
		}
	}
	if n.props == nil && n.patterns == nil && n.additional == nil && n.names == nil && n.unevalProps == nil {
		return m.left >= 0
	}
	for key, v := range obj {
		if !m.member(n, key, v, depth+1) {
			return false
		}
	}
	return m.left >= 0
}

// member takes every pattern as matched and every key as left unevaluated:
// that can only cost more.
func (m *meter) member(n *node, key string, v any, depth int) bool {
	next, ok := n.props[key]
	if !ok {
		next = n.additional
	}
	if next != nil && !m.visit(next, v, depth, 0) {
		return false
	}
	for _, p := range n.patterns {
		m.left -= len(key) * m.doc.patterns.compiled[p.pattern].size / patternPace
		if !m.visit(p.node, v, depth, 0) {
			return false
		}
	}
	if n.names != nil && !m.visit(n.names, key, depth, 0) {
		return false
	}
	return n.unevalProps == nil || m.visit(n.unevalProps, v, depth, 0)
}

func (m *meter) array(n *node, list []any, depth int) bool {
	if m.doc.uneval {
		m.left -= len(list) / 4
	}
	if n.load.unique {
		m.left -= uniqueWork(list)
	}
	for i, v := range list {
		if m.left < 0 {
			return false
		}
		if i < len(n.prefix) && !m.visit(n.prefix[i], v, depth+1, 0) {
			return false
		}
		if i >= len(n.prefix) && n.items != nil && !m.visit(n.items, v, depth+1, 0) {
			return false
		}
		if n.contains != nil && !m.visit(n.contains, v, depth+1, 0) {
			return false
		}
		for _, next := range n.rest {
			if !m.visit(next, v, depth+1, 0) {
				return false
			}
		}
	}
	return m.left >= 0
}

// uniqueWork is what uniqueItems costs. The validator compares up to 20 items
// each with each. More of them it hashes, but the hash of an array or object
// does not tell [[1],[2]] from [[1,[2]]], so values can be made that all
// collide, and then it compares each with each as well.
func uniqueWork(list []any) int {
	total, flat := 0, true
	for _, item := range list {
		total += size(item)
		switch item.(type) {
		case []any, map[string]any:
			flat = false
		}
	}
	switch n := len(list); {
	case n <= 20:
		return n * total
	case flat:
		return 4 * n
	default:
		return min(n*n/20+n*total/40, maxWork+1)
	}
}
