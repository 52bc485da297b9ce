package schema

import (
	"encoding/json"
	"slices"
	"strconv"
	"unicode/utf8"
)

// quick is a schema of the simple kind that most tools have, ready to accept
// without asking the validator. It may only accept: whatever is not in this
// part of JSON Schema, or is not surely valid, is left to the validator.
type quick struct {
	ok         bool // all keywords are of the known kind
	types      typeSet
	ref        *node
	anyOf      []*node
	required   []string
	closed     bool
	words      []string // enum, of strings only; nil is none
	wordSet    map[string]bool
	limits     []limit
	characters span
	items      span
	members    span

	cost  int  // schemas that accepts asks about one value, with this one; 0 is not settled yet
	enter bool // whether it goes on to the members or items of the value

	known known // what acceptsText uses
}

// typeSet holds the types of JSON Schema; none set means any.
type typeSet uint8

const (
	typeNull typeSet = 1 << iota
	typeBoolean
	typeInteger
	typeNumber
	typeString
	typeArray
	typeObject
)

var typeNames = map[string]typeSet{
	"null": typeNull, "boolean": typeBoolean, "integer": typeInteger, "number": typeNumber,
	"string": typeString, "array": typeArray, "object": typeObject,
}

// span is a least and greatest count; max below zero is none.
type span struct{ min, max int }

func (s span) holds(n int) bool { return n >= s.min && (s.max < 0 || n <= s.max) }

// limit is minimum, maximum or one of the exclusive two.
type limit struct {
	keyword string
	at      decimal
}

func (l limit) allows(d decimal) bool {
	switch c := d.compare(l.at); l.keyword {
	case "minimum":
		return c >= 0
	case "maximum":
		return c <= 0
	case "exclusiveMinimum":
		return c > 0
	case "exclusiveMaximum":
		return c < 0
	}
	return false
}

// maxQuickCost bounds the schemas that are asked about one value. With at most
// one of them going on to its members, the whole check is linear in the value.
const maxQuickCost = 16

// prepare fills what accepts and measure use. It runs after the validator has
// found the schema well formed.
func (d *document) prepare() {
	for _, n := range d.order {
		n.quick = d.simple(n)
		n.load = d.burden(n)
	}
	for _, n := range d.order {
		n.settle()
	}
	for _, n := range d.order {
		n.quick.known = n.knownKeys()
	}
}

// settle takes a schema out of the simple kind if asking it would cost much.
// References do not recurse, so it ends.
func (n *node) settle() {
	q := &n.quick
	if q.cost > 0 {
		return
	}
	q.cost = 1
	entering := 0
	if n.props != nil || n.additional != nil || n.items != nil {
		entering++
	}
	others := q.anyOf
	if q.ref != nil {
		others = append(slices.Clone(others), q.ref)
	}
	for _, other := range others {
		other.settle()
		q.cost = min(q.cost+other.quick.cost, maxQuickCost+1)
		if other.quick.enter {
			entering++
		}
	}
	q.enter = entering > 0
	if entering > 1 || q.cost > maxQuickCost {
		q.ok = false
	}
}

func (d *document) simple(n *node) quick {
	none := span{max: -1}
	q := quick{ok: !n.never, characters: none, items: none, members: none}
	if len(n.refs) == 1 && n.refs[0].keyword == "$ref" {
		q.ref = n.refs[0].target // and under draft-07, too, what stands beside it must hold
	}
	for i := range n.list("anyOf") {
		q.anyOf = append(q.anyOf, d.nodes[n.at+"/anyOf/"+strconv.Itoa(i)])
	}
	for key, v := range n.keywords {
		if !q.take(n, key, v) && !annotation(key) && !d.unchecked(key) {
			q.ok = false
		}
	}
	if len(q.words) > 8 {
		q.wordSet = make(map[string]bool, len(q.words))
		for _, word := range q.words {
			q.wordSet[word] = true
		}
	}
	return q
}

// unchecked reports whether the validator is told to treat a keyword as an
// annotation.
func (d *document) unchecked(key string) bool {
	switch key {
	case "format":
		return !d.draft7
	case "contentEncoding", "contentMediaType", "contentSchema":
		return true
	}
	return false
}

// take reads one keyword and reports whether it is of the simple kind.
func (q *quick) take(n *node, key string, v any) bool {
	switch key {
	case "$ref":
		return q.ref != nil
	case "type":
		return q.takeTypes(v)
	case "anyOf":
		return len(q.anyOf) > 0
	case "properties":
		return n.props != nil
	case "required":
		q.required, _ = stringList(v)
		return q.required != nil
	case "additionalProperties":
		q.closed = v == false
		return true
	case "items":
		return n.items != nil
	case "enum":
		q.words, _ = stringList(v)
		return q.words != nil
	case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum":
		number, ok := v.(json.Number)
		if !ok {
			return false
		}
		at, ok := parseDecimal(string(number), new(decimalRoom))
		q.limits = append(q.limits, limit{key, at})
		return ok
	case "minLength":
		return takeCount(v, &q.characters.min)
	case "maxLength":
		return takeCount(v, &q.characters.max)
	case "minItems":
		return takeCount(v, &q.items.min)
	case "maxItems":
		return takeCount(v, &q.items.max)
	case "minProperties":
		return takeCount(v, &q.members.min)
	case "maxProperties":
		return takeCount(v, &q.members.max)
	}
	return false
}

func (q *quick) takeTypes(v any) bool {
	names := []string{}
	if name, ok := v.(string); ok {
		names = append(names, name)
	} else if names, ok = stringList(v); !ok {
		return false
	}
	for _, name := range names {
		if typeNames[name] == 0 {
			return false
		}
		q.types |= typeNames[name]
	}
	return len(names) > 0
}

// takeCount reads a count that is written as plain digits.
func takeCount(v any, into *int) bool {
	number, _ := v.(json.Number)
	n, err := strconv.Atoi(string(number))
	*into = n
	return err == nil && n >= 0 && n <= 1<<30
}

// stringList returns an array of strings, never nil if it is one.
func stringList(v any) ([]string, bool) {
	list, ok := v.([]any)
	if !ok {
		return nil, false
	}
	words := make([]string, len(list))
	for i, item := range list {
		if words[i], ok = item.(string); !ok {
			return nil, false
		}
	}
	return words, true
}

// accepts reports whether v is surely valid against n. It takes time linear in
// v and allocates nothing.
func (n *node) accepts(v any) bool {
	q := &n.quick
	if !q.ok || q.ref != nil && !q.ref.accepts(v) || q.anyOf != nil && !acceptedByAny(q.anyOf, v) {
		return false
	}
	switch v := v.(type) {
	case string:
		return q.takes(typeString) && (q.words == nil || q.lists(v)) && q.acceptsLength(v)
	case json.Number:
		return q.words == nil && q.acceptsNumber(string(v))
	case map[string]any:
		return q.takes(typeObject) && q.words == nil && n.acceptsObject(v)
	case []any:
		return q.takes(typeArray) && q.words == nil && n.acceptsArray(v)
	case bool:
		return q.takes(typeBoolean) && q.words == nil
	case nil:
		return q.takes(typeNull) && q.words == nil
	}
	return false
}

func acceptedByAny(forms []*node, v any) bool {
	for _, form := range forms {
		if form.accepts(v) {
			return true
		}
	}
	return false
}

func (q *quick) takes(t typeSet) bool { return q.types == 0 || q.types&t != 0 }

func (n *node) acceptsObject(obj map[string]any) bool {
	q := &n.quick
	if !q.members.holds(len(obj)) {
		return false
	}
	for _, name := range q.required {
		if _, ok := obj[name]; !ok {
			return false
		}
	}
	if q.closed && len(obj) > len(n.props) {
		return false
	}
	if n.props == nil && n.additional == nil {
		return true
	}
	for key, v := range obj {
		next, ok := n.props[key]
		if !ok {
			next = n.additional // the schema false where closed
		}
		if next != nil && !next.accepts(v) {
			return false
		}
	}
	return true
}

func (n *node) acceptsArray(list []any) bool {
	if !n.quick.items.holds(len(list)) {
		return false
	}
	return n.items == nil || !slices.ContainsFunc(list, func(v any) bool { return !n.items.accepts(v) })
}

func (q *quick) lists(word string) bool {
	if q.wordSet != nil {
		return q.wordSet[word]
	}
	return slices.Contains(q.words, word)
}

func (q *quick) acceptsLength(s string) bool {
	if q.characters.min == 0 && q.characters.max < 0 {
		return true
	}
	return q.characters.holds(utf8.RuneCountInString(s))
}

func (q *quick) acceptsNumber(text string) bool {
	asNumber := q.takes(typeNumber)
	if asNumber && len(q.limits) == 0 {
		return true
	}
	if !asNumber && q.types&typeInteger == 0 {
		return false
	}
	var room decimalRoom
	d, ok := parseDecimal(text, &room)
	if !ok || !asNumber && !d.integer() {
		return false
	}
	for i := range q.limits {
		if !q.limits[i].allows(d) {
			return false
		}
	}
	return true
}
