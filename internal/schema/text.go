package schema

import (
	"github.com/ringi-dev/ringi/internal/strictjson"
)

// AcceptsText reports whether text is surely an object that strictjson takes,
// valid, and without keys that differ only by letter case. It builds no value,
// and it may only accept: false means that Parse, Validate and CaseTwins are to
// be asked.
func (s *Schema) AcceptsText(text string, lim strictjson.Limits) bool {
	r, ok := strictjson.NewReader(text, lim)
	return ok && r.Peek() == '{' && s.doc.root.acceptsText(&r) && r.End()
}

// known is what acceptsText needs of an object's schema: it takes an object
// only whose keys are all properties, and marks those that it has met.
type known struct {
	ok       bool
	place    map[string]int // of a property, its bit
	required uint64
}

// knownKeys fills in known. It runs after settle.
func (n *node) knownKeys() known {
	q := &n.quick
	if !q.ok || len(n.props) == 0 || len(n.props) > 64 {
		return known{}
	}
	k := known{ok: true, place: make(map[string]int, len(n.props))}
	keys := make(map[string]any, len(n.props))
	for name := range n.props {
		k.place[name] = len(k.place)
		keys[name] = nil
	}
	for _, name := range q.required {
		place, ok := k.place[name]
		k.ok = k.ok && ok
		k.required |= 1 << place
	}
	k.ok = k.ok && len(strictjson.CaseTwins(keys)) == 0
	return k
}

// acceptsText is accepts for a value that is still text.
func (n *node) acceptsText(r *strictjson.Reader) bool {
	q := &n.quick
	if !q.ok || q.ref != nil || q.anyOf != nil {
		return false
	}
	switch r.Peek() {
	case '{':
		return q.takes(typeObject) && q.words == nil && n.acceptsMembers(r)
	case '[':
		return q.takes(typeArray) && q.words == nil && n.acceptsItems(r)
	case '"':
		v, ok := r.String()
		return ok && q.takes(typeString) && (q.words == nil || q.lists(v)) && q.acceptsLength(v)
	case 't':
		return r.Literal("true") && q.takes(typeBoolean) && q.words == nil
	case 'f':
		return r.Literal("false") && q.takes(typeBoolean) && q.words == nil
	case 'n':
		return r.Literal("null") && q.takes(typeNull) && q.words == nil
	}
	v, ok := r.Number()
	return ok && q.words == nil && q.acceptsNumber(v)
}

func (n *node) acceptsMembers(r *strictjson.Reader) bool {
	k := &n.quick.known
	if !k.ok {
		return false
	}
	seen, count := uint64(0), 0
	for more, ok := r.Open(); more || !ok; more, ok = r.More('}') {
		if !ok {
			return false
		}
		key, ok := r.Key()
		place, is := k.place[key]
		if !ok || !is || seen&(1<<place) != 0 || !n.props[key].acceptsText(r) {
			return false
		}
		seen |= 1 << place
		count++
	}
	return seen&k.required == k.required && n.quick.members.holds(count)
}

func (n *node) acceptsItems(r *strictjson.Reader) bool {
	if n.items == nil {
		return false
	}
	count := 0
	for more, ok := r.Open(); more || !ok; more, ok = r.More(']') {
		if !ok || !n.items.acceptsText(r) {
			return false
		}
		count++
	}
	return n.quick.items.holds(count)
}
