package ringi

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/ringi-dev/ringi/internal/mask"
	"github.com/ringi-dev/ringi/internal/strictjson"
)

// tellModel marks a key of Tool.InputRequired whose value the model is told.
const tellModel = "x-tell-model"

// Told returns those of the supplied keys whose values the model is told, in
// their order: the keys that the tool's InputRequired marks with
// "x-tell-model": true. Of all others it learns the name alone (S-13), and so
// it does of every key of a tool that is not registered.
func (r *Registry) Told(name string, supplied []string) []string {
	e := r.entry(name)
	if e == nil || len(e.schemas.told) == 0 {
		return nil
	}
	var told []string
	for _, key := range supplied {
		if slices.Contains(e.schemas.told, key) {
			told = append(told, key)
		}
	}
	return told
}

// Secret returns the keys of a tool's input whose values are shown on no page
// and found by no search: those that a schema marks as secret, in themselves or
// in anything below. all is set where every key counts as secret: a mark stands
// where no key can be told, or the tool is not registered.
func (r *Registry) Secret(name string) (keys []string, all bool) {
	e := r.entry(name)
	if e == nil {
		return nil, true
	}
	return slices.Clone(e.schemas.secret), e.schemas.allSecret
}

// toldKeys reads the marks of the top-level properties of a person's schema. A
// mark anywhere else means nothing. One that is no boolean is refused, and so is
// one on a key that the schema also calls a secret, here or in the tool's input
// schema: what is masked on every page is not told to a model.
func toldKeys(person, input json.RawMessage) ([]string, error) {
	asked, all := propertiesOf(person)
	taken, rest := propertiesOf(input)
	var told []string
	for _, key := range slices.Sorted(maps.Keys(asked)) {
		sub, _ := asked[key].(map[string]any)
		mark, marked := sub[tellModel]
		tell, ok := mark.(bool)
		switch {
		case !marked:
		case !ok:
			return nil, fmt.Errorf("input required of %q: %s is true or false", key, tellModel)
		case tell && (mask.Marked(sub, all) || mask.Marked(taken[key], rest)):
			return nil, fmt.Errorf("input required of %q: %s on a value that is a secret", key, tellModel)
		case tell:
			told = append(told, key)
		}
	}
	return told, nil
}

// propertiesOf returns the schemas of an object's properties, and the whole. Of
// what is no object there are none.
func propertiesOf(raw json.RawMessage) (properties, all map[string]any) {
	all, err := strictjson.ParseObject(string(raw), strictjson.Limits{})
	if err != nil {
		return nil, nil
	}
	properties, _ = all["properties"].(map[string]any)
	return properties, all
}
