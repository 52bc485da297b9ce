package main

import (
	"path/filepath"
	"testing"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/access"
)

// S-12: what another site calls somebody is no second person under four eyes:
// only whom this server knows decides there.
func TestS12_FourEyesInAChatOfAnotherSite(t *testing.T) {
	d, err := openDirectory(t.Context(), filepath.Join(t.TempDir(), accessFile), access.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.close()
	known := access.ProvidedID("https://shop.example", "bo")
	if err := d.AddUser(t.Context(), operator(), access.User{ID: known, Name: "Bo", Roles: []access.Role{access.RoleApprover}}); err != nil {
		t.Fatal(err)
	}
	stranger := access.ProvidedID("https://shop.example", "ana-17")
	r := ringi.ApprovalRequest{Deciders: ringi.Deciders{People: []string{known, stranger}}}
	may := named(d.Directory, false)
	for _, c := range []struct {
		id       string
		fourEyes bool
		want     bool
	}{{known, false, true}, {stranger, false, true}, {known, true, true}, {stranger, true, false}, {"https://shop.example#eve", false, false}} {
		r.FourEyes = c.fourEyes
		if got := may(t.Context(), ringi.Principal{ID: c.id, Kind: ringi.Person}, r); got != c.want {
			t.Errorf("%s, four eyes %v: %v, want %v", c.id, c.fourEyes, got, c.want)
		}
	}

	// S-17: where roles have ceilings, what has a preview is not for a chat of
	// another site: nobody has said which previews its users are shown.
	r.FourEyes = false
	for _, c := range []struct {
		ceilings bool
		preview  *ringi.Preview
		want     bool
	}{{false, &ringi.Preview{Text: "x"}, true}, {true, nil, true}, {true, &ringi.Preview{Text: "x"}, false}} {
		r.Preview = c.preview
		if got := named(d.Directory, c.ceilings)(t.Context(), ringi.Principal{ID: known, Kind: ringi.Person}, r); got != c.want {
			t.Errorf("ceilings %v, preview %v: %v, want %v", c.ceilings, c.preview, got, c.want)
		}
	}
}
