package audit

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/ringi-dev/ringi"
	"pgregory.net/rapid"
)

func TestRequestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var r ringi.ApprovalRequest
		random(t, true).fill(reflect.ValueOf(&r).Elem(), "")
		body := EncodeRequest(&r)
		if !json.Valid(body) {
			t.Fatalf("not JSON: %s", body)
		}
		want := settled(r)
		var c codec
		var own ringi.ApprovalRequest
		if !decode(&c, string(body), &own, approvalRequest) {
			t.Fatalf("not read in our own spelling: %s", body)
		}
		if got := settled(own); !reflect.DeepEqual(got, want) {
			t.Fatalf("read\n%+v\nwant\n%+v", got, want)
		}
		var library ringi.ApprovalRequest
		if err := jsonv2.Unmarshal(body, &library, spelling, jsonv2.RejectUnknownMembers(true)); err != nil {
			t.Fatal(err)
		}
		if got := settled(library); !reflect.DeepEqual(got, want) {
			t.Fatalf("library read\n%+v\nwant\n%+v", got, want)
		}
		for _, spelled := range [][]byte{body, append([]byte("\n"), body...)} {
			got, err := DecodeRequest(spelled)
			if err != nil || !reflect.DeepEqual(settled(got), want) {
				t.Fatalf("decoded\n%+v, %v\nwant\n%+v", got, err, want)
			}
		}
	})
}

func TestRequestGolden(t *testing.T) {
	var r ringi.ApprovalRequest
	full().fill(reflect.ValueOf(&r).Elem(), "")
	got := append(EncodeRequest(&r), '\n')
	path := filepath.Join("testdata", "golden", "request.json")
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("written\n%s\nfrozen\n%s", got, want)
	}
}

// TestRequestInputIsAString holds that the input is never embedded JSON, whose
// bytes a JSON library would change.
func TestRequestInputIsAString(t *testing.T) {
	input := ringi.Input(`{ "amount": 1.0, "name": "\u00e9\/" }`)
	r := ringi.ApprovalRequest{Call: ringi.ToolCall{Input: input}}
	var seen struct {
		Call struct {
			Input string `json:"input"`
		} `json:"call"`
	}
	if err := json.Unmarshal(EncodeRequest(&r), &seen); err != nil || seen.Call.Input != string(input) {
		t.Errorf("input %q, %v", seen.Call.Input, err)
	}
}

func TestRequestRefused(t *testing.T) {
	late := ringi.ApprovalRequest{ExpiresAt: benchTime.AddDate(9000, 0, 0)}
	if b := EncodeRequest(&late); b != nil {
		t.Errorf("a time without a form became %s", b)
	}
	for _, body := range []string{``, `null`, `[]`, `{`, `{"id":1}`, `{"id":"a","id":"b"}`, `{"created_at":"yesterday"}`, `{} {}`} {
		if r, err := DecodeRequest([]byte(body)); err == nil || !reflect.DeepEqual(r, ringi.ApprovalRequest{}) {
			t.Errorf("%s: %+v, %v", body, r, err)
		}
	}
}
