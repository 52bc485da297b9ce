package schema

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"github.com/ringi-dev/ringi/internal/strictjson"
)

// explain puts what the validator found into words. The validator's own words
// quote whole values and round limits through float64.
func (d *document) explain(err error) error {
	e := &Error{Kind: KindInvalid}
	var invalid *jsonschema.ValidationError
	if !errors.As(err, &invalid) {
		e.Problems = []Problem{{Message: "the value is not valid"}}
		return e
	}
	found := findings{doc: d}
	found.gather(invalid)
	room := maxErrorText - 100 // for the words around the problems
	for _, f := range found.first {
		p := Problem{Path: pointer(f.path), Message: f.message}
		if room -= len(p.text()) + 2; room < 0 {
			break
		}
		e.Problems = append(e.Problems, p)
	}
	e.More = found.total - len(e.Problems)
	return e
}

// compileError explains an error of the validator's compiler.
func compileError(err error) error {
	var ours *CompileError
	if errors.As(err, &ours) {
		return ours
	}
	var unloaded *jsonschema.LoadURLError
	if errors.As(err, &unloaded) && errors.As(unloaded.Err, &ours) {
		return ours
	}
	var malformed *jsonschema.SchemaValidationError
	var invalid *jsonschema.ValidationError
	if errors.As(err, &malformed) && errors.As(malformed.Err, &invalid) {
		found := findings{doc: &document{}}
		found.gather(invalid)
		first := found.first[0]
		return &CompileError{Kind: KindInvalid, Path: pointer(first.path), detail: first.message}
	}
	return &CompileError{Kind: KindInvalid, detail: strictjson.Excerpt(err.Error(), 200)}
}

// findings keeps the first problems in the order of their paths: the validator
// walks maps and finds them in any order.
type findings struct {
	doc   *document
	first []finding
	total int
}

type finding struct {
	path    []string
	message string
}

// gather walks down to the problems that a reader can act on.
func (f *findings) gather(e *jsonschema.ValidationError) {
	switch e.ErrorKind.(type) {
	case *kind.Schema, *kind.Group, *kind.Reference, *kind.AllOf, nil:
		if len(e.Causes) > 0 {
			for _, cause := range e.Causes {
				f.gather(cause)
			}
			return
		}
	}
	f.total++
	if len(f.first) == maxProblems && comparePaths(e.InstanceLocation, f.first[maxProblems-1].path) > 0 {
		return
	}
	next := finding{e.InstanceLocation, cutText(f.doc.sentence(e), messageBytes)}
	i, same := slices.BinarySearchFunc(f.first, next, func(a, b finding) int {
		return cmp.Or(comparePaths(a.path, b.path), strings.Compare(a.message, b.message))
	})
	if same {
		f.total-- // found by two ways
		return
	}
	f.first = slices.Insert(f.first, i, next)
	f.first = f.first[:min(len(f.first), maxProblems)]
}

// comparePaths sorts positions in an array as numbers.
func comparePaths(a, b []string) int {
	return slices.CompareFunc(a, b, func(x, y string) int {
		i, errX := strconv.Atoi(x)
		j, errY := strconv.Atoi(y)
		if errX == nil && errY == nil && i != j {
			return cmp.Compare(i, j)
		}
		return strings.Compare(x, y)
	})
}

// sentence says what must be sent instead. It quotes names and the schema's own
// values, cut short, and never the value that was sent.
func (d *document) sentence(e *jsonschema.ValidationError) string {
	switch k := e.ErrorKind.(type) {
	case *kind.Type:
		return "must be " + wanted(k.Want) + ", is " + got(k.Got, k.Want)
	case *kind.Required:
		return "lacks the required " + plural(len(k.Missing), "property ", "properties ") + names(k.Missing)
	case *kind.AdditionalProperties:
		return d.unknownNames(e, k.Properties)
	case *kind.Enum:
		return "must be one of " + literals(k.Want)
	case *kind.Const:
		return "must be " + literal(k.Want)
	case *kind.Minimum:
		return "must be at least " + decimalText(k.Want)
	case *kind.Maximum:
		return "must be at most " + decimalText(k.Want)
	case *kind.ExclusiveMinimum:
		return "must be more than " + decimalText(k.Want)
	case *kind.ExclusiveMaximum:
		return "must be less than " + decimalText(k.Want)
	case *kind.MultipleOf:
		return "must be a multiple of " + decimalText(k.Want)
	case *kind.AnyOf:
		return noForm(d, e)
	case *kind.OneOf:
		if len(k.Subschemas) > 1 {
			return fmt.Sprintf("matches more than one of the allowed forms (numbers %d and %d); exactly one is asked for", k.Subschemas[0]+1, k.Subschemas[1]+1)
		}
		return noForm(d, e)
	case *kind.FalseSchema:
		return "is not allowed here; leave it out"
	case *kind.Not:
		return "has a form that is not allowed"
	}
	return counted(e.ErrorKind)
}

// counted says it for lengths, counts and texts.
func counted(k jsonschema.ErrorKind) string {
	switch k := k.(type) {
	case *kind.MinLength:
		return fmt.Sprintf("must have at least %d characters, has %d", k.Want, k.Got)
	case *kind.MaxLength:
		return fmt.Sprintf("must have at most %d characters, has %d", k.Want, k.Got)
	case *kind.MinItems:
		return fmt.Sprintf("must have at least %d items, has %d", k.Want, k.Got)
	case *kind.MaxItems:
		return fmt.Sprintf("must have at most %d items, has %d", k.Want, k.Got)
	case *kind.AdditionalItems:
		return fmt.Sprintf("must not have the last %d items", k.Count)
	case *kind.MinProperties:
		return fmt.Sprintf("must have at least %d properties, has %d", k.Want, k.Got)
	case *kind.MaxProperties:
		return fmt.Sprintf("must have at most %d properties, has %d", k.Want, k.Got)
	case *kind.UniqueItems:
		return fmt.Sprintf("must not have equal items; items %d and %d are equal", k.Duplicates[0], k.Duplicates[1])
	case *kind.Contains:
		return "must have an item of the form that the schema asks for under contains"
	case *kind.MinContains:
		return fmt.Sprintf("must have at least %d items of the form under contains, has %d", k.Want, len(k.Got))
	case *kind.MaxContains:
		return fmt.Sprintf("must have at most %d items of the form under contains, has %d", k.Want, len(k.Got))
	case *kind.Pattern:
		return "must match the pattern " + strictjson.Excerpt(k.Want, 120)
	case *kind.Format:
		return "must have the format " + strictjson.Excerpt(k.Want, excerptBytes)
	case *kind.PropertyNames:
		return "has the property name " + strictjson.Excerpt(k.Property, excerptBytes) + ", which is not allowed"
	case *kind.DependentRequired:
		return "lacks " + names(k.Missing) + ", required beside " + strictjson.Excerpt(k.Prop, excerptBytes)
	case *kind.Dependency:
		return "lacks " + names(k.Missing) + ", required beside " + strictjson.Excerpt(k.Prop, excerptBytes)
	}
	return "does not match the schema"
}

// unknownNames tells which names are known, where the schema says so.
func (d *document) unknownNames(e *jsonschema.ValidationError, unknown []string) string {
	slices.Sort(unknown)
	text := "has the unknown " + plural(len(unknown), "property ", "properties ") + names(unknown)
	_, fragment, _ := strings.Cut(e.SchemaURL, "#")
	at, err := url.PathUnescape(fragment)
	if n := d.nodes[at]; err == nil && n != nil {
		if len(n.props) == 0 {
			return text + "; no properties are taken"
		}
		text += "; known are " + names(slices.Sorted(maps.Keys(n.props)))
	}
	return text
}

// noForm explains anyOf and oneOf. Where all forms differ by type alone it is
// one plain sentence.
func noForm(d *document, e *jsonschema.ValidationError) string {
	var types []string
	gotType := ""
	for _, cause := range e.Causes {
		k, ok := cause.ErrorKind.(*kind.Type)
		if !ok || len(cause.InstanceLocation) != len(e.InstanceLocation) {
			types = nil
			break
		}
		types, gotType = append(types, k.Want...), k.Got
	}
	if len(types) > 0 {
		return "must be " + wanted(types) + ", is " + got(gotType, types)
	}
	const most = 4
	text := fmt.Sprintf("matches none of the %d allowed forms", len(e.Causes))
	for i, cause := range e.Causes[:min(len(e.Causes), most)] {
		branch := findings{doc: d}
		branch.gather(cause)
		first := branch.first[0]
		place := ""
		if len(first.path) > len(e.InstanceLocation) {
			place = strconv.Quote(pointer(first.path[len(e.InstanceLocation):])) + " "
		}
		text += fmt.Sprintf("; form %d: %s%s", i+1, place, cutText(first.message, 120))
	}
	return text
}

func wanted(types []string) string {
	var words []string
	for _, t := range types {
		if word := withArticle(t); !slices.Contains(words, word) {
			words = append(words, word)
		}
	}
	return strings.Join(words, " or ")
}

func got(t string, want []string) string {
	if t == "number" && slices.Contains(want, "integer") {
		return "a number with a fraction"
	}
	return withArticle(t)
}

func withArticle(t string) string {
	switch t {
	case "null":
		return t
	case "integer", "array", "object":
		return "an " + t
	}
	return "a " + t
}

func plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

func literals(values []any) string {
	const most = 10
	var texts []string
	for _, v := range values[:min(len(values), most)] {
		texts = append(texts, literal(v))
	}
	text := strings.Join(texts, ", ")
	if left := len(values) - most; left > 0 {
		text += " and " + strconv.Itoa(left) + " more"
	}
	return text
}

func literal(v any) string {
	switch v := v.(type) {
	case string:
		return strictjson.Excerpt(v, excerptBytes)
	case json.Number:
		return cutText(string(v), excerptBytes)
	}
	text := string(strictjson.Canonical(v, nil))
	if len(text) > excerptBytes || strings.ContainsFunc(text, func(r rune) bool { return !strconv.IsPrint(r) }) {
		return "a certain value of the schema"
	}
	return text
}

// decimalText writes a limit exactly, or nearly where that would be long.
func decimalText(r *big.Rat) string {
	if n, exact := r.FloatPrec(); exact && n <= excerptBytes {
		if text := r.FloatString(n); len(text) <= excerptBytes {
			return text
		}
	}
	return "about " + new(big.Float).SetRat(r).Text('g', 10)
}
