package ringi_test

import (
	"reflect"
	"testing"

	"github.com/ringi-dev/ringi"
)

// filled sets every limit, whatever there is, to the same number.
func filled(n int64) ringi.Limits {
	var l ringi.Limits
	v := reflect.ValueOf(&l).Elem()
	for i := range v.NumField() {
		v.Field(i).SetInt(n)
	}
	return l
}

// Every limit is in the list: a new field that is not would be lost in silence.
func TestLimits_EveryFieldCounts(t *testing.T) {
	none := ringi.Limits{}
	for _, tt := range []struct {
		name      string
		got, want ringi.Limits
	}{
		{"or of nothing", none.Or(filled(7)), filled(7)},
		{"or of what is set", filled(3).Or(filled(7)), filled(3)},
		{"or keeps none", filled(-1).Or(filled(7)), filled(-1)},
		{"beyond the same", filled(7).Beyond(filled(7)), none},
		{"beyond another", filled(3).Beyond(filled(7)), filled(3)},
		{"strictest is smaller", filled(3).Strictest(filled(7)), filled(3)},
		{"strictest of the other", filled(7).Strictest(filled(3)), filled(3)},
		{"strictest of none and a number", filled(-1).Strictest(filled(3)), filled(3)},
		{"strictest of a number and none", filled(3).Strictest(filled(-1)), filled(3)},
		{"strictest of a number and nothing said", filled(3).Strictest(none), filled(3)},
		{"no default is missing", none.Or(ringi.DefaultLimits()), ringi.DefaultLimits()},
	} {
		if tt.got != tt.want {
			t.Errorf("%s: %+v, want %+v", tt.name, tt.got, tt.want)
		}
	}
	v := reflect.ValueOf(ringi.DefaultLimits())
	for i := range v.NumField() {
		if v.Field(i).Int() <= 0 {
			t.Errorf("no default for %s", v.Type().Field(i).Name)
		}
	}
}

func TestLimits_DoNotAllocate(t *testing.T) {
	def, child := ringi.DefaultLimits(), ringi.Limits{Steps: 3}
	var got ringi.Limits
	if n := testing.AllocsPerRun(100, func() { got = child.Or(def).Strictest(def).Beyond(def) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if got != (ringi.Limits{Steps: 3}) {
		t.Errorf("got %+v", got)
	}
}
