package schema

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/ringi-dev/ringi/internal/strictjson"
)

// document is a schema's text read into nodes, one for each schema in it.
type document struct {
	root     *node
	nodes    map[string]*node // by JSON pointer
	anchors  map[string]*node
	order    []*node // inner ones before those that hold them
	patterns *patterns
	draft7   bool
	uneval   bool // some schema looks at what others left unevaluated
}

// node is one schema of a document and how it leads on to others.
type node struct {
	at       string         // JSON pointer in the document
	keywords map[string]any // nil for a boolean schema
	never    bool           // the schema false

	children []*node // all schemas written inside this one
	refs     []reference
	values   int // JSON values of its own
	total    int // with children and references; 0 is not counted yet
	counting bool

	here        []*node // applied to the same value
	dependent   map[string]*node
	props       map[string]*node
	patterns    []patternProperty
	additional  *node
	names       *node
	unevalProps *node
	prefix      []*node
	items       *node
	contains    *node
	rest        []*node // additionalItems, unevaluatedItems

	quick quick // what accepts uses
	load  load  // what measure uses
}

type reference struct {
	keyword, text string
	target        *node
}

type patternProperty struct {
	pattern string
	node    *node
}

// inspect reads a schema and holds it to the limits. It neither compiles nor
// expands anything.
func inspect(text string) (*document, error) {
	v, err := strictjson.Parse(text, strictjson.Limits{Bytes: MaxBytes, Depth: MaxDepth})
	if err != nil {
		return nil, unreadable(err)
	}
	d := &document{nodes: map[string]*node{}, anchors: map[string]*node{}, patterns: newPatterns()}
	if obj, ok := v.(map[string]any); ok {
		if d.draft7, err = dialect(obj); err != nil {
			return nil, err
		}
	}
	if d.root, err = d.read(v, ""); err != nil {
		return nil, err
	}
	if err := d.resolve(); err != nil {
		return nil, err
	}
	total, err := d.count(d.root)
	if err != nil {
		return nil, err
	}
	if total > MaxNodes {
		return nil, &CompileError{Kind: KindNodes, detail: fmt.Sprintf("with its references written out the schema has more than %d values", MaxNodes)}
	}
	return d, nil
}

func unreadable(err error) error {
	var syntax *strictjson.SyntaxError
	if errors.As(err, &syntax) {
		switch syntax.Kind {
		case strictjson.KindSize:
			return &CompileError{Kind: KindSize, detail: fmt.Sprintf("the schema is longer than %d bytes", MaxBytes), err: err}
		case strictjson.KindDepth:
			return &CompileError{Kind: KindDepth, Path: cutPath(syntax.Path), detail: fmt.Sprintf("the schema is nested deeper than %d", MaxDepth), err: err}
		}
	}
	return &CompileError{Kind: KindJSON, detail: err.Error(), err: err}
}

// dialect reads $schema. Servers of the Model Context Protocol commonly write
// draft-07; all else but 2020-12 is refused rather than read as something that
// it is not.
func dialect(obj map[string]any) (draft7 bool, err error) {
	v, ok := obj["$schema"]
	if !ok {
		return false, nil
	}
	s, _ := v.(string)
	name := strings.TrimSuffix(s, "#")
	name = strings.TrimPrefix(strings.TrimPrefix(name, "https://"), "http://")
	switch name {
	case "json-schema.org/draft/2020-12/schema":
		return false, nil
	case "json-schema.org/draft-07/schema":
		return true, nil
	}
	return false, &CompileError{Kind: KindDialect, Path: "/$schema", detail: "the dialect " + strictjson.Excerpt(s, excerptBytes) + " is not known; use https://json-schema.org/draft/2020-12/schema or http://json-schema.org/draft-07/schema"}
}

// read makes the node of the schema v, which stands at the pointer at.
func (d *document) read(v any, at string) (*node, error) {
	n := &node{at: at, values: 1}
	d.nodes[at] = n
	switch v := v.(type) {
	case bool:
		n.never = !v
	case map[string]any:
		n.keywords = v
		// In a stable order, so that the same schema always gives the same error.
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if err := d.keyword(n, key, v[key]); err != nil {
				return nil, err
			}
		}
	default:
		return nil, &CompileError{Kind: KindInvalid, Path: cutPath(at), detail: "a schema is an object, true or false"}
	}
	d.order = append(d.order, n)
	return n, nil
}

// keyword reads one keyword of n: the schemas inside it, or a plain value.
// Which keywords hold schemas is in the 2020-12 core, sections 10 and 11, and
// in draft-07, section 9 of core and 6 of validation.
func (d *document) keyword(n *node, key string, v any) error {
	if !d.draft7 || draft7Keyword(key) {
		for _, read := range []func(*node, string, any) (bool, error){d.inPlace, d.ofObject, d.ofArray} {
			if known, err := read(n, key, v); known {
				return err
			}
		}
		if err := d.plain(n, key, v); err != nil {
			return err
		}
	}
	n.values += size(v)
	return nil
}

// plain reads a keyword that holds no schema.
func (d *document) plain(n *node, key string, v any) error {
	switch key {
	case "$id", "$schema":
		if n.at != "" {
			return &CompileError{Kind: KindReference, Path: cutPath(n.at), detail: key + " may stand at the root only"}
		}
	case "$ref", "$dynamicRef", "$recursiveRef":
		text, _ := v.(string)
		n.refs = append(n.refs, reference{keyword: key, text: text})
	case "$anchor", "$dynamicAnchor":
		return d.anchor(n, v)
	case "pattern":
		if text, ok := v.(string); ok {
			return d.patterns.add(text, n.at+"/"+key)
		}
	}
	return nil
}

// inPlace reads a keyword whose schemas judge the same value, or none.
func (d *document) inPlace(n *node, key string, v any) (known bool, err error) {
	switch key {
	case "allOf", "anyOf", "oneOf":
		return true, d.readList(n, key, v, &n.here)
	case "not", "if", "then", "else":
		child, err := d.readOne(n, key, v)
		n.here = append(n.here, child)
		return true, err
	case "dependentSchemas", "dependencies":
		dependent, err := d.readMap(n, key, v)
		if n.dependent == nil {
			n.dependent = dependent
		} else { // both keywords: as if all of the second always applied
			n.here = slices.AppendSeq(n.here, maps.Values(dependent))
		}
		return true, err
	case "$defs", "definitions":
		_, err = d.readMap(n, key, v)
		return true, err
	case "contentSchema":
		_, err = d.readOne(n, key, v)
		return true, err
	}
	return false, nil
}

// ofObject reads a keyword whose schemas judge the members of an object.
func (d *document) ofObject(n *node, key string, v any) (known bool, err error) {
	switch key {
	case "properties":
		n.props, err = d.readMap(n, key, v)
	case "patternProperties":
		var byPattern map[string]*node
		byPattern, err = d.readMap(n, key, v)
		for _, pattern := range slices.Sorted(maps.Keys(byPattern)) {
			n.patterns = append(n.patterns, patternProperty{pattern, byPattern[pattern]})
			if err == nil {
				err = d.patterns.add(pattern, n.at+"/"+key)
			}
		}
	case "additionalProperties":
		n.additional, err = d.readOne(n, key, v)
	case "unevaluatedProperties":
		d.uneval = true
		n.unevalProps, err = d.readOne(n, key, v)
	case "propertyNames":
		n.names, err = d.readOne(n, key, v)
	default:
		return false, nil
	}
	return true, err
}

// ofArray reads a keyword whose schemas judge the items of an array.
func (d *document) ofArray(n *node, key string, v any) (known bool, err error) {
	switch key {
	case "prefixItems":
		return true, d.readList(n, key, v, &n.prefix)
	case "items":
		if _, tuple := v.([]any); tuple { // of draft-07
			return true, d.readList(n, key, v, &n.prefix)
		}
		n.items, err = d.readOne(n, key, v)
	case "contains":
		n.contains, err = d.readOne(n, key, v)
	case "additionalItems", "unevaluatedItems":
		d.uneval = d.uneval || key == "unevaluatedItems"
		var child *node
		child, err = d.readOne(n, key, v)
		n.rest = append(n.rest, child)
	default:
		return false, nil
	}
	return true, err
}

// draft7Keyword reports whether draft-07 knows a keyword that keyword treats,
// or at least does not read it otherwise.
func draft7Keyword(key string) bool {
	switch key {
	case "$dynamicRef", "$recursiveRef", "$anchor", "$dynamicAnchor", "$defs", "prefixItems",
		"unevaluatedItems", "unevaluatedProperties", "contentSchema", "dependentSchemas":
		return false
	}
	return true
}

func (d *document) readOne(n *node, key string, v any) (*node, error) {
	child, err := d.read(v, n.at+"/"+key)
	if err == nil {
		n.children = append(n.children, child)
	}
	return child, err
}

func (d *document) readList(n *node, key string, v any, into *[]*node) error {
	list, ok := v.([]any)
	if !ok {
		return &CompileError{Kind: KindInvalid, Path: cutPath(n.at + "/" + key), detail: "this must be an array of schemas"}
	}
	n.values++
	for i, item := range list {
		child, err := d.readOne(n, key+"/"+strconv.Itoa(i), item)
		if err != nil {
			return err
		}
		*into = append(*into, child)
	}
	return nil
}

func (d *document) readMap(n *node, key string, v any) (map[string]*node, error) {
	obj, ok := v.(map[string]any)
	if !ok {
		return nil, &CompileError{Kind: KindInvalid, Path: cutPath(n.at + "/" + key), detail: "this must be an object of schemas"}
	}
	n.values++
	byName := make(map[string]*node, len(obj))
	for _, name := range slices.Sorted(maps.Keys(obj)) {
		if _, list := obj[name].([]any); list && key == "dependencies" {
			n.values += size(obj[name]) // the other form: names that are required too
			continue
		}
		child, err := d.readOne(n, string(strictjson.AppendPointer([]byte(key), name)), obj[name])
		if err != nil {
			return nil, err
		}
		byName[name] = child
	}
	return byName, nil
}

func (d *document) anchor(n *node, v any) error {
	name, _ := v.(string)
	if other, ok := d.anchors[name]; ok && other != n {
		return &CompileError{Kind: KindReference, Path: cutPath(n.at), detail: "the anchor " + strictjson.Excerpt(name, excerptBytes) + " stands twice in the document"}
	}
	d.anchors[name] = n
	return nil
}

// resolve finds the schema that each reference means. Only schemas of this
// document are found, and only where a schema may stand.
func (d *document) resolve() error {
	for _, n := range d.order {
		for i := range n.refs {
			r := &n.refs[i]
			fragment, local := strings.CutPrefix(r.text, "#")
			if !local {
				return &CompileError{Kind: KindReference, Path: cutPath(n.at + "/" + r.keyword), detail: "the reference " + strictjson.Excerpt(r.text, excerptBytes) + " leaves the document; only references that begin with # are followed"}
			}
			fragment, err := url.PathUnescape(fragment)
			if fragment == "" || strings.HasPrefix(fragment, "/") {
				r.target = d.nodes[fragment]
			} else {
				r.target = d.anchors[fragment]
			}
			if err != nil || r.target == nil {
				return &CompileError{Kind: KindReference, Path: cutPath(n.at + "/" + r.keyword), detail: "the reference " + strictjson.Excerpt(r.text, excerptBytes) + " means no schema of this document"}
			}
			n.here = append(n.here, r.target)
		}
	}
	return nil
}

// count returns the JSON values of n with its references written out. Each
// schema is counted once and remembered, so it takes no longer than the text is
// long, whatever the sum. A sum above the limit stays just above it.
func (d *document) count(n *node) (int, error) {
	if n.total > 0 {
		return n.total, nil
	}
	n.counting = true
	total := n.values
	for _, child := range n.children {
		t, err := d.count(child)
		if err != nil {
			return 0, err
		}
		total = min(total+t, MaxNodes+1)
	}
	for _, r := range n.refs {
		if r.target.counting {
			return 0, &CompileError{Kind: KindRecursive, Path: cutPath(n.at + "/" + r.keyword), detail: "the reference " + strictjson.Excerpt(r.text, excerptBytes) + " leads back to itself; a schema that contains itself has no bound"}
		}
		t, err := d.count(r.target)
		if err != nil {
			return 0, err
		}
		total = min(total+t, MaxNodes+1)
	}
	n.counting, n.total = false, total
	return total, nil
}

// size counts the JSON values in v.
func size(v any) int {
	n := 1
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			n += size(item)
		}
	case map[string]any:
		for _, item := range v {
			n += size(item)
		}
	}
	return n
}

// list returns an array keyword, or nothing.
func (n *node) list(key string) []any {
	list, _ := n.keywords[key].([]any)
	return list
}

// annotation reports whether a keyword says nothing about validity. Unknown
// keywords do not count as such: somebody meant something by them.
func annotation(key string) bool {
	switch key {
	case "$schema", "$id", "$comment", "$defs", "definitions", "title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly":
		return true
	}
	return strings.HasPrefix(key, "x-")
}
