package ringi

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/ringi-dev/ringi/internal/schema"
	"github.com/ringi-dev/ringi/internal/strictjson"
)

// maxValues bounds what a person types for one call, in bytes.
const maxValues = 64 << 10

// Merge lays a person's values over the model's input (S-13). The values must
// be valid against the tool's InputRequired; they replace the top-level keys
// that this schema declares. The model's values for those keys are dropped,
// also where the person gave none; every other member keeps its bytes, in its
// order, and the person's stand behind them. A model's key that differs from a
// declared one only by letter case is refused.
//
// It returns the new input and the keys that the person supplied. The input is
// new bytes: check it with [Registry.CheckMerged], judge and show it anew.
// Every error is an [InputError].
func (r *Registry) Merge(name string, input Input, values string) (Input, []string, error) {
	e := r.entry(name)
	if e == nil {
		return "", nil, unknownTool(name)
	}
	if e.schemas.person == nil {
		return "", nil, invalidInput(name, errors.New("the tool asks a person for no values"))
	}
	if err := checkValues(e.schemas.person, values); err != nil {
		return "", nil, invalidInput(name, err)
	}
	supplied, err := members(values)
	if err != nil {
		return "", nil, invalidInput(name, err)
	}
	merged, err := overlay(string(input), e.schemas.personKeys, supplied)
	if err != nil {
		return "", nil, invalidInput(name, err)
	}
	keys := make([]string, len(supplied))
	for i, m := range supplied {
		keys[i] = m.key
	}
	return Input(merged), keys, nil
}

// CheckValues checks a person's values against the InputRequired of a stored
// definition, for a process without the registry: before anything is claimed,
// so that a bad answer uses nothing up (F165). A definition whose InputRequired
// is open, empty or not a schema is an error of its own; else the error is an
// [InputError].
func CheckValues(def Tool, values string) error {
	if len(def.InputRequired) == 0 {
		return fmt.Errorf("check values: tool %q asks a person for no values", def.Name)
	}
	s, _, err := compilePerson(def.InputRequired)
	if err != nil {
		return fmt.Errorf("check values for tool %q: %w", def.Name, err)
	}
	if err := checkValues(s, values); err != nil {
		return invalidInput(def.Name, err)
	}
	return nil
}

// CheckResult checks a result that a person gives in the tool's place, or that
// somebody else reports, against the tool's output schema; a tool without one
// takes any text. Every error is an [InputError].
func (r *Registry) CheckResult(name, result string) error {
	e := r.entry(name)
	if e == nil {
		return unknownTool(name)
	}
	return checkResult(name, e.schemas.output, result)
}

// CheckResultDefinition is [Registry.CheckResult] over a stored definition,
// for a process without the registry. A definition whose output schema does
// not compile is an error of its own.
func CheckResultDefinition(def Tool, result string) error {
	if len(def.OutputSchema) == 0 {
		return nil
	}
	s, err := compileSchema("output schema", def.OutputSchema)
	if err != nil {
		return fmt.Errorf("check result of tool %q: %w", def.Name, err)
	}
	return checkResult(def.Name, s, result)
}

func checkResult(name string, s *schema.Schema, result string) error {
	if s == nil {
		return nil
	}
	v, err := strictjson.Parse(result, strictjson.Limits{})
	if err == nil {
		err = validate(s, v)
	}
	if err != nil {
		return invalidInput(name, err)
	}
	return nil
}

func checkValues(s *schema.Schema, values string) error {
	obj, err := strictjson.ParseObject(values, strictjson.Limits{Bytes: maxValues})
	if err != nil {
		return err
	}
	return validate(s, obj)
}

// validate recovers, as a broken validator refuses (S-15).
func validate(s *schema.Schema, v any) (err error) {
	defer func() {
		if recover() != nil {
			err = errors.New("the value could not be checked")
		}
	}()
	return s.Validate(v)
}

// withoutKeys drops members by exact key and leaves every other byte as it is.
// Text that is no object is left to the check that follows.
func withoutKeys(text string, keys []string, lim InputLimits) (string, error) {
	obj, err := strictjson.ParseObject(text, strictjson.Limits(lim))
	if err != nil {
		return "", err
	}
	if !slices.ContainsFunc(keys, func(key string) bool { _, ok := obj[key]; return ok }) {
		return text, nil
	}
	return overlay(text, keys, nil)
}

// member is one member of an object, byte for byte.
type member struct {
	key  string // unescaped
	text string // key, colon and value as written
}

// overlay writes the members of input without those of the given keys, then
// the supplied ones.
func overlay(input string, keys []string, supplied []member) (string, error) {
	own, err := members(input)
	if err != nil {
		return "", err
	}
	parts := make([]string, 0, len(own)+len(supplied))
	for _, m := range own {
		switch {
		case slices.Contains(keys, m.key):
		case isTwin(m.key, keys):
			return "", twinError(m.key)
		default:
			parts = append(parts, m.text)
		}
	}
	for _, m := range supplied {
		parts = append(parts, m.text)
	}
	return "{" + strings.Join(parts, ",") + "}", nil
}

// members splits an object into its members, in their order.
func members(text string) ([]member, error) {
	d := jsontext.NewDecoder(strings.NewReader(text))
	if tok, err := d.ReadToken(); err != nil || tok.Kind() != '{' {
		return nil, errors.New("the input is not a JSON object")
	}
	var list []member
	for d.PeekKind() == '"' {
		raw, err := d.ReadValue()
		if err != nil {
			return nil, fmt.Errorf("read key: %w", err)
		}
		end := int(d.InputOffset())
		start := end - len(raw)
		var key string
		if err := json.Unmarshal(raw, &key); err != nil {
			return nil, fmt.Errorf("read key: %w", err)
		}
		if _, err := d.ReadValue(); err != nil {
			return nil, fmt.Errorf("read value: %w", err)
		}
		list = append(list, member{key: key, text: text[start:d.InputOffset()]})
	}
	if tok, err := d.ReadToken(); err != nil || tok.Kind() != '}' {
		return nil, errors.New("the input is not a JSON object")
	}
	if _, err := d.ReadToken(); err != io.EOF {
		return nil, errors.New("something follows the JSON object")
	}
	return list, nil
}
