package access

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestViews(t *testing.T) {
	h := newHouse(t, Options{})
	h.add(t, "ana", RoleApprover)
	h.add(t, "ben", RoleApprover)
	a, _ := h.enterAs(t, "local:ana")
	b, _ := h.enterAs(t, "local:ben")
	keep := func(w Who, name, query string) error { return h.KeepView(ctx, w, View{name, query}) }
	if err := errors.Join(keep(a, "refunds", "tool=refund"), keep(a, "b", ""), keep(a, "refunds", "tool=pay"), keep(b, "b", "x")); err != nil {
		t.Fatal(err)
	}
	views := func(w Who) []View {
		t.Helper()
		list, err := h.Views(ctx, w)
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	if got := views(a); !slices.Equal(got, []View{{"b", ""}, {"refunds", "tool=pay"}}) {
		t.Errorf("ana keeps %v", got)
	}
	if err := errors.Join(h.DropView(ctx, a, "b"), h.DropView(ctx, a, "b")); err != nil || len(views(a)) != 1 || len(views(b)) != 1 {
		t.Errorf("a view is dropped twice: %v, %v and %v are left", err, views(a), views(b))
	}
	for name, v := range map[string]View{"no name": {"", ""}, "two lines": {"a\nb", ""}, "blanks around": {" a", ""},
		"long name": {strings.Repeat("x", 41), ""}, "long query": {"a", strings.Repeat("x", 4001)}} {
		if err := keep(a, v.Name, v.Query); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := keep(a, strings.Repeat("ж", 40), strings.Repeat("%D0%B6", 600)); err != nil {
		t.Error(err)
	}
	for i := len(views(a)); i < MaxViews; i++ {
		if err := keep(a, fmt.Sprint("n", i), ""); err != nil {
			t.Fatal(err)
		}
	}
	if err := keep(a, "one more", ""); !errors.Is(err, ErrInvalid) || len(views(a)) != MaxViews {
		t.Errorf("one too many: %v, %d are there", err, len(views(a)))
	}
	if err := keep(a, "n5", "tool=x"); err != nil {
		t.Errorf("one of them again: %v", err)
	}
	for name, w := range map[string]Who{"nobody": {Space: "default"}, "agent": client("client:x", Scopes(), "*"), "other space": Operator("os:1@x", "blue")} {
		if err := errors.Join(keep(w, "a", "")); !errors.Is(err, ErrForbidden) || len(views(w)) != 0 {
			t.Errorf("%s keeps a view: %v", name, err)
		}
		if err := h.DropView(ctx, w, "a"); !errors.Is(err, ErrForbidden) {
			t.Errorf("%s drops a view: %v", name, err)
		}
	}
}

// Whether somebody opened a request is known for 90 days, over as many as are
// asked for.
func TestOpened(t *testing.T) {
	h := newHouse(t, Options{})
	h.add(t, "ana", RoleApprover)
	a, _ := h.enterAs(t, "local:ana")
	var ids []string
	for i := range 120 {
		ids = append(ids, fmt.Sprint("req_", i))
		if i%2 == 0 {
			if err := h.Look(ctx, a, ids[i]); err != nil {
				t.Fatal(err)
			}
		}
	}
	count := func(want int) {
		t.Helper()
		got, err := h.Opened(ctx, a, ids)
		if err != nil || len(got) != want {
			t.Errorf("%d are opened, %v, want %d", len(got), err, want)
		}
	}
	count(60)
	if got, err := h.Opened(ctx, a, nil); err != nil || len(got) != 0 {
		t.Errorf("of none: %v, %v", got, err)
	}
	h.clock.move(openedAge - time.Second)
	if err := h.Tend(ctx); err != nil {
		t.Fatal(err)
	}
	count(60)
	h.clock.move(time.Second)
	if err := h.Tend(ctx); err != nil {
		t.Fatal(err)
	}
	count(0)
}
