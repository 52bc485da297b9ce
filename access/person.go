package access

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/ringi-dev/ringi"
)

// Persons returns, for each principal's id, the id of the person behind it, so
// that four eyes compare people and not logins (finding S-12). Two ids with the
// same answer are one person.
//
//   - Logins that [Options.SamePerson] joins have the answer of the first of
//     them in the order of ids.
//   - An agent's client, and a token, count as their owner.
//   - A client or token that is unknown or belongs to nobody, a shared login,
//     and the empty id have the empty answer: nobody knows who it is. With it
//     four eyes cannot be met.
//   - Any other id, such as "os:1000@host", stands for itself.
func (d *Directory) Persons(ctx context.Context, ids []string) ([]string, error) {
	out := make([]string, len(ids))
	for i, id := range ids {
		person, err := d.person(ctx, id)
		if err != nil {
			return nil, fmt.Errorf("find person: %w", err)
		}
		out[i] = person
	}
	return out, nil
}

func (d *Directory) person(ctx context.Context, id string) (string, error) {
	var err error
	switch {
	case strings.HasPrefix(id, "client:"):
		id, err = d.owner(ctx, `SELECT owner FROM clients WHERE space = ? AND id = ?`, id)
	case strings.HasPrefix(id, "tok_"):
		id, err = d.owner(ctx, `SELECT owner FROM tokens WHERE space = ? AND id = ?`, id)
	}
	if id == "" || err != nil {
		return "", err
	}
	var shared bool
	err = d.row(ctx, `SELECT shared FROM users WHERE space = ? AND id = ?`, d.o.Space, id).Scan(&shared)
	if err != nil && !none(err) {
		return "", err
	}
	if shared {
		return "", nil
	}
	if first, ok := d.same[id]; ok {
		return first, nil
	}
	return id, nil
}

func (d *Directory) owner(ctx context.Context, query, id string) (string, error) {
	var owner string
	err := d.row(ctx, query, d.o.Space, id).Scan(&owner)
	if none(err) {
		return "", nil
	}
	return owner, err
}

// FourEyes reports whether a decider is a second person beside the initiators
// of a request, seen as people. It is false as well where there are none, or
// somebody is not known.
func (d *Directory) FourEyes(ctx context.Context, initiators []string, decider ringi.Principal) (bool, error) {
	people, err := d.Persons(ctx, append(slices.Clone(initiators), decider.ID))
	if err != nil {
		return false, err
	}
	last := len(people) - 1
	asked, decides := people[:last], people[last]
	return len(asked) > 0 && decides != "" && !slices.Contains(asked, "") && !slices.Contains(asked, decides), nil
}

// joined maps each id of the lists to the first id of its person. Lists that
// share an id are of one person.
func joined(lists [][]string) map[string]string {
	same := map[string]string{}
	var first func(string) string
	first = func(id string) string {
		if up, ok := same[id]; ok && up != id {
			return first(up)
		}
		return id
	}
	for _, ids := range lists {
		for _, id := range ids {
			a, b := first(ids[0]), first(id)
			same[max(a, b)], same[min(a, b)] = min(a, b), min(a, b)
		}
	}
	for id := range same {
		same[id] = first(id)
	}
	return same
}
