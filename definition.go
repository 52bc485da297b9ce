package ringi

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/ringi-dev/ringi/internal/schema"
	"github.com/ringi-dev/ringi/internal/strictjson"
)

// Digest returns the definition digest of the tool: the SHA-256, in hex, of a
// JSON array of everything that a model is told of it and that a person
// decides by: name, description, schemas, effect, the server with its identity
// and annotations, whether somebody else runs it, and who may decide it and
// how. Where one of them changes, what was asked under the old digest is stale
// (F160). The order of keys in a schema is no change.
//
// What is judged anew at every call is not in it: approval marker, operator's
// declaration, group, timeout. An error means that a schema is not JSON.
func (t Tool) Digest() (string, error) {
	b := append(make([]byte, 0, 1024), '[')
	add := func(s string) { b = append(strictjson.AppendString(b, s), ',') }
	add("ringi-tool-v1")
	add(t.Name)
	add(t.Description)
	for _, raw := range []json.RawMessage{t.InputSchema, t.OutputSchema, t.InputRequired} {
		text, err := canonicalText(raw)
		if err != nil {
			return "", fmt.Errorf("digest schema of tool %q: %w", t.Name, err)
		}
		add(text)
	}
	add(string(t.Effect))
	remote := t.Remote
	if remote == nil {
		remote = &Remote{}
	}
	annotations, err := canonicalText(remote.Annotations)
	if err != nil {
		return "", fmt.Errorf("digest annotations of tool %q: %w", t.Name, err)
	}
	add(remote.Server)
	add(remote.Identity)
	add(annotations)
	add(string(t.DataClass))
	if t.PreviewClass != "" { // a definition without one keeps its digest
		add(string(t.PreviewClass))
	}
	for _, fact := range []bool{t.Remote != nil, t.External, t.AdminOnly, t.AllowEdit, t.AllowRespond} {
		b = append(fmt.Append(b, fact), ',')
	}
	b = append(appendNames(b, t.Deciders.People), ',')
	b = append(appendNames(b, t.Deciders.Teams), ']')
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:]), nil
}

// canonicalText returns the one text of a JSON value; empty for none.
func canonicalText(raw json.RawMessage) (string, error) {
	if len(raw) == 0 {
		return "", nil
	}
	b, err := schema.Canonical(raw)
	return string(b), err
}

// appendNames writes a set of names: their order says nothing.
func appendNames(b []byte, names []string) []byte {
	b = append(b, '[')
	for i, name := range slices.Sorted(slices.Values(names)) {
		if i > 0 {
			b = append(b, ',')
		}
		b = strictjson.AppendString(b, name)
	}
	return append(b, ']')
}

// copied returns a tool that shares no memory with t.
func (t Tool) copied() Tool {
	t.InputSchema = slices.Clone(t.InputSchema)
	t.OutputSchema = slices.Clone(t.OutputSchema)
	t.InputRequired = slices.Clone(t.InputRequired)
	t = t.own()
	if t.Remote != nil {
		t.Remote.Annotations = slices.Clone(t.Remote.Annotations)
	}
	return t
}

// own returns a tool whose parts that policy reads are its own: a function
// that writes into what it was handed changes nobody else's verdict (S-40).
func (t Tool) own() Tool {
	if t.Remote != nil {
		remote := *t.Remote
		t.Remote = &remote
	}
	t.Deciders.People = slices.Clone(t.Deciders.People)
	t.Deciders.Teams = slices.Clone(t.Deciders.Teams)
	return t
}
