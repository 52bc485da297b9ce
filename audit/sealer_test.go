package audit

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/ringi-dev/ringi"
)

func sealer(c Chain) *Sealer {
	return c.Sealer("sto_1", "default", "run_1", func(runID string, c Chain) string { return fmt.Sprint(runID, c.Seq, c.Head[0]) })
}

// last is the head that a sealer returns; its MAC is over just that.
func last(head [32]byte, mac string) [32]byte {
	if !strings.HasPrefix(mac, "run_1") || !strings.HasSuffix(mac, fmt.Sprint(" ", head[0])) {
		panic("MAC " + mac + " is not of this head")
	}
	return head
}

// TestSealer holds that records are the same bytes whether they are chained as
// they are made or sealed later, in one go, piece by piece, or on a chain that
// was read.
func TestSealer(t *testing.T) {
	all := bodies()
	for _, body := range all {
		full().fill(reflect.ValueOf(body).Elem(), "")
	}
	genesis := Genesis("sto_1", "default", "run_1")
	want, chain, err := genesis.append(making{random: count}, nil, benchTime, 3, all)
	if err != nil {
		t.Fatal(err)
	}
	draft := func() []ringi.Record {
		drafts, end, err := genesis.append(making{random: count, drafts: true}, nil, benchTime, 3, all)
		if err != nil || end != (Chain{Seq: chain.Seq}) {
			t.Fatal(end, err)
		}
		return drafts
	}
	for name, seal := range map[string]func([]ringi.Record) [32]byte{
		"at once": func(d []ringi.Record) [32]byte { return last(sealer(Chain{}).Seal(d)) },
		"one by one": func(d []ringi.Record) (head [32]byte) {
			s := sealer(Chain{})
			for i := range d {
				head = last(s.Seal(d[i : i+1]))
			}
			return head
		},
		"on a chain": func(d []ringi.Record) [32]byte {
			first := last(sealer(Chain{}).Seal(d[:2]))
			return last(sealer(Chain{Seq: 2, Head: first}).Seal(d[2:]))
		},
	} {
		t.Run(name, func(t *testing.T) {
			drafts := draft()
			if head := seal(drafts); head != chain.Head || !reflect.DeepEqual(drafts, want) {
				t.Errorf("%x\n%v\nwant %x\n%v", head, drafts, chain.Head, want)
			}
			if _, err := Events("sto_1", "default", "run_1", drafts, chain.Head, chain.Seq); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestSealerRefusesByItsHash holds that a draft out of its place, and one that
// nobody sealed, do not verify.
func TestSealerRefusesByItsHash(t *testing.T) {
	all := bodies()[:3]
	genesis := Genesis("sto_1", "default", "run_1")
	draft := func() []ringi.Record {
		drafts, _, err := genesis.append(making{drafts: true}, nil, benchTime, 3, all)
		if err != nil {
			t.Fatal(err)
		}
		return drafts
	}
	left, gap := draft(), draft()
	s := sealer(Chain{})
	s.Seal(gap[:1])
	for name, d := range map[string]struct {
		records []ringi.Record
		head    [32]byte
	}{"not sealed": {left, left[2].Hash}, "one was left out": {gap, last(s.Seal(gap[2:]))}} {
		if _, err := Events("sto_1", "default", "run_1", d.records, d.head, 3); err == nil {
			t.Errorf("%s: verifies", name)
		}
	}
}
