package audit

import (
	"reflect"
	"testing"

	"github.com/ringi-dev/ringi"
)

func TestBodyBytesAreExact(t *testing.T) {
	body := &ringi.ModelResponded{Step: 1, Calls: []ringi.JudgedCall{{ID: "c1", Tool: "t\xff", Input: "\xff\u2028{}"}}}
	b, err := EncodeBody(body)
	if err != nil {
		t.Fatal(err)
	}
	got, err := DecodeBody(body.Kind(), b)
	if err != nil || !reflect.DeepEqual(got, body) {
		t.Errorf("%s gives %+v, %v", b, got, err)
	}
	if _, err := EncodeBody(&ringi.RunWaiting{}); err == nil {
		t.Error("an event of a stream was encoded")
	}
	if got, err := DecodeBody("no_such_kind", b); err == nil {
		t.Errorf("an unknown kind gives %+v", got)
	}
}
