// Package schema checks JSON values against JSON Schema, 2020-12 or draft-07.
//
// Schemas and values come from strangers: a remote server writes the one, a
// model the other. So a schema is read strictly, cannot reach out of its
// document, has a bounded size even with its references written out, and a
// check that would take long is refused before it begins. Whatever is unclear
// is an error, never a pass. Numbers are compared exactly.
//
// The verdict is that of github.com/santhosh-tekuri/jsonschema/v6. Before it
// stands a check of our own that knows a small part of JSON Schema, may only
// accept, and leaves everything else to the validator.
package schema

import (
	"fmt"
	"maps"
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/ringi-dev/ringi/internal/strictjson"
)

// The limits of a schema.
const (
	MaxBytes = 64 << 10 // length of its text
	MaxDepth = 32       // objects and arrays inside one another
	MaxNodes = 10_000   // JSON values, a reference counting as all that it refers to
)

// Schema is a compiled JSON Schema. It is immutable and safe for concurrent
// use. The zero value is not usable; see [Compile].
type Schema struct {
	doc        *document
	validator  *jsonschema.Schema
	properties []string
	required   []string
}

// Compile reads a schema. A schema without $schema is 2020-12. References
// must stay in the document and must not recurse; $id and $schema may stand at
// the root only; patterns are Go regular expressions (RE2). Formats are
// annotations, as 2020-12 has it, and are checked under draft-07. Every error
// is a *CompileError.
func Compile(raw []byte) (s *Schema, err error) {
	defer func() {
		if r := recover(); r != nil {
			s, err = nil, &CompileError{Kind: KindPanic, detail: "the compiler broke off: " + strictjson.Excerpt(fmt.Sprint(r), 100)}
		}
	}()
	text := string(raw)
	doc, err := inspect(text)
	if err != nil {
		return nil, err
	}
	validator, err := doc.compile()
	if err != nil {
		return nil, err
	}
	doc.prepare()
	s = &Schema{doc: doc, validator: validator}
	s.properties = propertyNames(text)
	for _, name := range doc.root.list("required") {
		if name, ok := name.(string); ok {
			s.required = append(s.required, name)
		}
	}
	return s, nil
}

// Validate checks v, which must be a value that strictjson.Parse built: any
// other that the schema looks at is refused. Every error is an *Error. A
// validator that panics, or a check that would take too long, refuses the value.
func (s *Schema) Validate(v any) error {
	if s.doc.root.accepts(v) {
		return nil
	}
	return s.judge(v)
}

// judge asks the validator itself.
func (s *Schema) judge(v any) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = &Error{Kind: KindPanic, Problems: []Problem{{Message: "the check of this value broke off; send a simpler value"}}}
		}
	}()
	if err := s.doc.measure(v); err != nil {
		return err
	}
	if err := s.validator.Validate(v); err != nil {
		return s.doc.explain(err)
	}
	return nil
}

// Closed reports whether the schema takes an object whose keys are all known:
// type object alone, at least one property, and additionalProperties or
// unevaluatedProperties false, with nothing beside it that lets more keys in.
func (s *Schema) Closed() bool {
	root := s.doc.root
	if root.keywords["type"] != "object" || len(root.props) == 0 || len(root.patterns) > 0 {
		return false
	}
	if s.doc.draft7 && len(root.refs) > 0 {
		return false // draft-07 ignores what stands beside a reference
	}
	if root.keywords["additionalProperties"] == false {
		return true
	}
	return root.additional == nil && root.keywords["unevaluatedProperties"] == false && !s.doc.draft7 &&
		!slices.ContainsFunc(root.here, (*node).namesKeys) && len(root.dependent) == 0
}

// namesKeys reports whether n may make keys known to an unevaluatedProperties
// above it.
func (n *node) namesKeys() bool {
	return len(n.props) > 0 || len(n.patterns) > 0 || len(n.dependent) > 0 || n.additional != nil || n.unevalProps != nil ||
		slices.ContainsFunc(n.here, (*node).namesKeys)
}

// Empty reports whether the schema says nothing: true, {}, or annotations such
// as a title only.
func (s *Schema) Empty() bool {
	root := s.doc.root
	if root.keywords == nil {
		return !root.never
	}
	for key := range root.keywords {
		if !annotation(key) {
			return false
		}
	}
	return true
}

// Properties returns the names of the top-level properties in the order in
// which the schema lists them. The caller may keep and change the slice.
func (s *Schema) Properties() []string { return slices.Clone(s.properties) }

// Required returns the names of the required top-level properties in the order
// in which the schema lists them. The caller may keep and change the slice.
func (s *Schema) Required() []string { return slices.Clone(s.required) }

func propertyNames(text string) []string {
	var names []string
	for _, m := range membersOf(text) {
		if m.Key == "properties" {
			for _, p := range membersOf(m.Value) {
				names = append(names, p.Key)
			}
		}
	}
	return names
}

// membersOf is for a text that was read before; what is no object has none.
func membersOf(text string) []strictjson.Member {
	members, err := strictjson.Members(text, strictjson.Limits{Bytes: MaxBytes, Depth: MaxDepth})
	if err != nil {
		return nil
	}
	return members
}

const baseURL = "mem:///schema"

func (d *document) compile() (*jsonschema.Schema, error) {
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	if d.draft7 {
		c.DefaultDraft(jsonschema.Draft7)
	}
	c.UseLoader(noLoader{})
	c.UseRegexpEngine(d.patterns.engine)
	var resource any = !d.root.never
	if d.root.keywords != nil {
		// Both were read by inspect; here $id would only rename the document.
		keywords := maps.Clone(d.root.keywords)
		delete(keywords, "$id")
		delete(keywords, "$schema")
		resource = keywords
	}
	if err := c.AddResource(baseURL, resource); err != nil {
		return nil, compileError(err)
	}
	s, err := c.Compile(baseURL)
	if err != nil {
		return nil, compileError(err)
	}
	return s, nil
}

// noLoader is the second lock: inspect has refused all references that leave
// the document.
type noLoader struct{}

func (noLoader) Load(string) (any, error) {
	return nil, &CompileError{Kind: KindReference, detail: "a reference leaves the document"}
}
