package ringi

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/ringi-dev/ringi/internal/mask"
	"github.com/ringi-dev/ringi/internal/schema"
	"github.com/ringi-dev/ringi/internal/strictjson"
)

// schemas are a tool's compiled schemas.
type schemas struct {
	input   *schema.Schema // of what runs
	offered *schema.Schema // of what a model writes: without the person's keys
	person  *schema.Schema // of what a person supplies; nil where nothing is asked
	output  *schema.Schema // nil where the tool declares none
	// personKeys are the keys that a person supplies, sorted.
	personKeys []string
	// told are those of them whose values the model is told, sorted.
	told []string
	// secret are the keys of the input that a schema marks as secret, sorted;
	// allSecret is set where a mark stands elsewhere.
	secret    []string
	allSecret bool
}

// anyObject is the input schema of a tool that declares none.
var anyObject = json.RawMessage(`{"type":"object"}`)

// define checks a tool and derives all that is derived from it.
func (e *entry) define(t Tool, strict bool) error {
	t = t.copied()
	if isEmptySchema(t.InputSchema) {
		t.InputSchema = slices.Clone(anyObject)
	}
	if err := checkWords(t, strict); err != nil {
		return err
	}
	var err error
	if e.schemas, err = compileSchemas(t); err != nil {
		return err
	}
	e.tool, e.offered = t, t
	if len(e.schemas.personKeys) > 0 {
		if e.offered.InputSchema, err = schema.Without(t.InputSchema, e.schemas.personKeys); err != nil {
			return fmt.Errorf("take the person's keys from the input schema: %w", err)
		}
		if e.schemas.offered, err = compileSchema("input schema without the person's keys", e.offered.InputSchema); err != nil {
			return err
		}
	}
	if e.digest, err = t.Digest(); err != nil {
		return err
	}
	if e.definition, err = json.Marshal(t); err != nil {
		return fmt.Errorf("encode definition: %w", err)
	}
	return nil
}

// isEmptySchema reports whether nothing is said of the input, which is an
// object in any case.
func isEmptySchema(raw json.RawMessage) bool {
	text := strings.TrimSpace(string(raw))
	inside, ok := strings.CutPrefix(text, "{")
	return text == "" || ok && strings.TrimSpace(inside) == "}"
}

// checkWords checks everything but the schemas.
func checkWords(t Tool, strict bool) error {
	switch {
	case !validToolName(t.Name):
		return errors.New("a tool name is a letter of ASCII, then up to 63 letters, digits, _ or -")
	case !t.Effect.Known():
		return fmt.Errorf("unknown effect %q", t.Effect)
	case strict && t.Effect == Undeclared && t.Remote == nil:
		return fmt.Errorf("effect is undeclared: declare %s, %s or %s", ReadOnly, IdempotentWrite, NonIdempotentWrite)
	case !t.DataClass.Known():
		return fmt.Errorf("unknown data class %q", t.DataClass)
	case !t.PreviewClass.Known():
		return fmt.Errorf("unknown data class of the preview %q", t.PreviewClass)
	case t.Timeout < 0:
		return fmt.Errorf("timeout %v is negative", t.Timeout)
	case slices.Contains(t.Deciders.People, "") || slices.Contains(t.Deciders.Teams, ""):
		return errors.New("deciders hold an empty name")
	case !allText(append(append([]string{t.Description, t.Group}, t.Deciders.People...), t.Deciders.Teams...)...):
		return errors.New("description, group and deciders must be valid UTF-8")
	}
	return checkRemote(t.Remote)
}

func checkRemote(r *Remote) error {
	switch {
	case r == nil:
		return nil
	case r.Server == "":
		return errors.New("a remote tool needs the name of its server")
	case !allText(r.Server, r.Identity):
		return errors.New("server and identity must be valid UTF-8")
	}
	switch r.Approval {
	case RemoteUnjudged, RemoteRequired, RemoteNotRequired:
	default:
		return fmt.Errorf("unknown remote approval %q", r.Approval)
	}
	if len(r.Annotations) > 0 {
		if _, err := strictjson.Parse(string(r.Annotations), strictjson.Limits{Bytes: 64 << 10}); err != nil {
			return fmt.Errorf("annotations: %w", err)
		}
	}
	return nil
}

// validToolName holds [A-Za-z][A-Za-z0-9_-]{0,63}, which every vendor takes
// as it is, so that no name needs another spelling (S-39).
func validToolName(name string) bool {
	if name == "" || len(name) > 64 {
		return false
	}
	for i := range len(name) {
		c := name[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (i == 0 || (c < '0' || c > '9') && c != '_' && c != '-') {
			return false
		}
	}
	return true
}

func allText(texts ...string) bool {
	return !slices.ContainsFunc(texts, func(s string) bool { return !utf8.ValidString(s) })
}

func compileSchemas(t Tool) (schemas, error) {
	var s schemas
	var err error
	if s.input, err = compileSchema("input schema", t.InputSchema); err != nil {
		return s, err
	}
	if !isObjectSchema(t.InputSchema) {
		return s, errors.New(`input schema is not of an object: its "type" must be "object"`)
	}
	s.offered = s.input
	s.secret, s.allSecret = mask.Keys(t.InputSchema, t.InputRequired)
	if len(t.OutputSchema) > 0 {
		if s.output, err = compileSchema("output schema", t.OutputSchema); err != nil {
			return s, err
		}
	}
	if len(t.InputRequired) == 0 {
		return s, nil
	}
	if s.person, s.personKeys, err = compilePerson(t.InputRequired); err != nil {
		return s, err
	}
	if s.told, err = toldKeys(t.InputRequired, t.InputSchema); err != nil {
		return s, err
	}
	return s, checkPersonKeys(s.personKeys, s.input.Properties())
}

func compileSchema(what string, raw json.RawMessage) (*schema.Schema, error) {
	s, err := schema.Compile(raw)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	return s, nil
}

// compilePerson compiles the schema of what a person supplies. One that is
// open or asks for nothing would take anything as an answer: it is refused at
// registration, and again wherever it is read from a store (F166).
func compilePerson(raw json.RawMessage) (*schema.Schema, []string, error) {
	const what = "input required"
	s, err := compileSchema(what, raw)
	if err != nil {
		return nil, nil, err
	}
	keys := slices.Sorted(slices.Values(s.Properties()))
	switch {
	case s.Empty() || len(keys) == 0:
		return nil, nil, errors.New(what + " asks for nothing: it needs properties")
	case !isObjectSchema(raw):
		return nil, nil, errors.New(what + ` is not of an object: its "type" must be "object"`)
	case !s.Closed():
		return nil, nil, errors.New(what + ` is open: it needs "additionalProperties": false`)
	}
	return s, keys, nil
}

// checkPersonKeys holds that the tool takes what a person supplies, and that
// no other key of the tool could be taken for one of them.
func checkPersonKeys(person, declared []string) error {
	for i, key := range person {
		if !slices.Contains(declared, key) {
			return fmt.Errorf("input required asks for %q, which the input schema does not declare", key)
		}
		for _, other := range slices.Concat(person[:i], declared) {
			if other != key && strings.EqualFold(other, key) {
				return fmt.Errorf("input required asks for %q, which differs from %q only by letter case", key, other)
			}
		}
	}
	return nil
}

func isObjectSchema(raw json.RawMessage) bool {
	top, err := strictjson.ParseObject(string(raw), strictjson.Limits{})
	return err == nil && top["type"] == "object"
}
