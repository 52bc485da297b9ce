package ringi

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"unicode/utf8"

	"github.com/ringi-dev/ringi/internal/schema"
	"github.com/ringi-dev/ringi/internal/strictjson"
	"github.com/ringi-dev/ringi/internal/toolcontext"
)

// InputLimits bound a call's input. A zero field takes the default, a negative
// one means none.
type InputLimits struct {
	Bytes int // 1 MiB
	Depth int // 64 objects and arrays inside one another
}

// Checked is an input that passed every check.
type Checked struct {
	// Input is what is digested, shown and runs.
	Input Input
	// Raw is what the model wrote, where that differs from Input; else empty.
	Raw Input
	// Value is the decoded input of a typed tool, for [WithChecked]; nil for a
	// raw tool.
	Value any
	// Twins are the keys of one object that differ only by letter case, as
	// JSON pointers (RFC 6901): both are kept, and a page flags them.
	Twins []string
}

// maxMessage bounds what a model is told of an input, in bytes.
const maxMessage = 2 << 10

// CheckInput checks what a model wrote as the input of a call, before anybody
// is asked: the tool exists; the text is JSON that means one thing, an object,
// and within the limits; it is valid against the schema that the model was
// offered; and for a typed tool it decodes. An input that is empty, blank,
// null, or a JSON string of one of these or of `{}`, is `{}`.
//
// The keys that a person supplies (Tool.InputRequired) are not the model's to
// write: its values for them are dropped, and a key that differs from one of
// them only by letter case refuses the input (S-13).
//
// Every error is an [InputError], with code unknown_tool or invalid_input and
// a message that a model can act on.
func (r *Registry) CheckInput(name string, raw Input, lim InputLimits) (c Checked, err error) {
	e := r.entry(name)
	if e == nil {
		return Checked{}, unknownTool(name)
	}
	defer refusePanic(name, &c, &err)
	text := string(raw)
	if !strings.HasPrefix(text, "{") && strictjson.IsEmptyObject(text) && !startsObject(text) {
		text = "{}"
	}
	if len(e.schemas.personKeys) > 0 {
		own, err := withoutKeys(text, e.schemas.personKeys, lim)
		if err != nil {
			return Checked{}, invalidInput(name, err)
		}
		text = own
	}
	c, err = e.check(text, lim, e.schemas.offered)
	if err == nil && c.Input != raw {
		c.Raw = raw
	}
	return c, err
}

// CheckMerged checks an input that holds a person's values as well (see
// [Registry.Merge]), or a person's edit: against the tool's whole schema.
// Errors are as for [Registry.CheckInput].
func (r *Registry) CheckMerged(name string, input Input, lim InputLimits) (c Checked, err error) {
	e := r.entry(name)
	if e == nil {
		return Checked{}, unknownTool(name)
	}
	defer refusePanic(name, &c, &err)
	return e.check(string(input), lim, e.schemas.input)
}

// refusePanic recovers: between a model's answer and a grant a broken validator
// or decoder refuses this one call (S-15).
func refusePanic(name string, c *Checked, err *error) {
	if recover() != nil {
		*c, *err = Checked{}, invalidInput(name, errors.New("the input could not be checked"))
	}
}

func (e *entry) check(text string, lim InputLimits, against *schema.Schema) (Checked, error) {
	var obj map[string]any // stays nil where the text alone shows that nothing is wrong
	if len(e.schemas.personKeys) > 0 || !against.AcceptsText(text, strictjson.Limits(lim)) {
		var err error
		if obj, err = e.parse(text, lim, against); err != nil {
			return Checked{}, invalidInput(e.tool.Name, err)
		}
	}
	c := Checked{Input: Input(text)}
	if e.decode != nil {
		var err error
		if c.Value, err = e.decode(c.Input); err != nil {
			return Checked{}, invalidInput(e.tool.Name, decodeMessage(err))
		}
	}
	for _, twins := range strictjson.CaseTwins(obj) {
		for _, key := range twins.Keys {
			c.Twins = append(c.Twins, string(strictjson.AppendPointer([]byte(twins.Path), key)))
		}
	}
	return c, nil
}

// parse reads an input and holds it against a schema and the keys of persons.
func (e *entry) parse(text string, lim InputLimits, against *schema.Schema) (map[string]any, error) {
	obj, err := strictjson.ParseObject(text, strictjson.Limits(lim))
	if err != nil {
		return nil, err
	}
	if err := against.Validate(obj); err != nil {
		return nil, err
	}
	if twin := personTwin(obj, e.schemas.personKeys); twin != "" {
		return nil, twinError(twin)
	}
	return obj, nil
}

// startsObject reports whether text is an object, if only of blanks: its bytes
// then stay as they are.
func startsObject(text string) bool {
	return strings.HasPrefix(strings.TrimLeft(text, " \t\n\r"), "{")
}

// personTwin returns a key that differs from one that a person supplies only
// by letter case; empty where there is none.
func personTwin(obj map[string]any, personKeys []string) string {
	if len(personKeys) == 0 {
		return ""
	}
	for key := range obj {
		if isTwin(key, personKeys) {
			return key
		}
	}
	return ""
}

func isTwin(key string, personKeys []string) bool {
	return !slices.Contains(personKeys, key) &&
		slices.ContainsFunc(personKeys, func(p string) bool { return strings.EqualFold(p, key) })
}

func twinError(key string) error {
	return fmt.Errorf("the key %s differs only by letter case from one that a person supplies; leave it out", strictjson.Excerpt(key, 64))
}

func unknownTool(name string) *InputError {
	return &InputError{Tool: name, Code: CodeUnknownTool, Err: fmt.Errorf("there is no tool %s; call only the tools that you were given", strictjson.Excerpt(name, 64))}
}

func invalidInput(name string, err error) *InputError {
	if text := err.Error(); len(text) > maxMessage {
		cut := maxMessage
		for !utf8.RuneStart(text[cut]) {
			cut--
		}
		err = errors.New(text[:cut] + "…")
	}
	return &InputError{Tool: name, Code: CodeInvalidInput, Err: err}
}

// checkedContext hands a decoded input to the typed handler. The value is
// given once, and only for the bytes that it was decoded from: another attempt
// decodes anew, so that nothing written into a value is read again.
type checkedContext struct {
	context.Context
	input Input
	value any
	taken atomic.Bool
}

type checkedKey struct{}

func (c *checkedContext) Value(key any) any {
	if key == (checkedKey{}) {
		return c
	}
	return c.Context.Value(key)
}

// WithChecked returns a context that carries the decoded input of a call to
// its typed handler, so that it is not decoded twice. It saves time and does
// nothing else: without it, for other bytes or for another attempt, the
// handler decodes the call's own bytes.
func WithChecked(ctx context.Context, c Checked) context.Context {
	if c.Value == nil {
		return ctx
	}
	return &checkedContext{Context: ctx, input: c.Input, value: c.Value}
}

func checkedValue(ctx context.Context, input Input) any {
	if t, ok := ctx.Value(toolcontext.CheckedKey{}).(*toolcontext.Context); ok && t.Checked != nil && t.CheckedInput == string(input) {
		v := t.Checked
		t.Checked = nil
		return v
	}
	c, ok := ctx.Value(checkedKey{}).(*checkedContext)
	if !ok || c.input != input || !c.taken.CompareAndSwap(false, true) {
		return nil
	}
	return c.value
}
