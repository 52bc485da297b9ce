package webhook

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
)

// MaxEndpoints is how many endpoints an outbox serves (S-37).
const MaxEndpoints = 20

// Endpoint is a receiver.
type Endpoint struct {
	// Name is what people, logs and tables call it: its address may hold a
	// secret. Letters, digits, dots, underscores and hyphens. An endpoint of
	// another name is another endpoint; one whose address changes stays itself.
	Name string
	// URL is where messages go. What it may be is the client's to say.
	URL string
	// Secrets sign, all of them: see [ParseSecrets]. At least one.
	Secrets []Secret
	// Types are what it is told; empty means everything.
	Types []Type
}

var endpointName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// Check refuses an endpoint that nothing could be sent to. Its error never holds
// the address.
func (e Endpoint) Check() error {
	if !endpointName.MatchString(e.Name) {
		return fmt.Errorf("name: %q is not 1 to 64 letters, digits, dots, underscores and hyphens", e.Name)
	}
	u, err := url.Parse(e.URL)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil || u.Fragment != "" {
		return errors.New("url: it is not of the form https://HOST/PATH, without user and fragment")
	}
	if len(e.Secrets) == 0 || len(e.Secrets) > maxSecrets {
		return fmt.Errorf("secrets: there are %d, not 1 to %d", len(e.Secrets), maxSecrets)
	}
	for _, t := range e.Types {
		if !t.Known() {
			return fmt.Errorf("types: unknown type %q: say some of %q", t, Types())
		}
	}
	return nil
}

func (e *Endpoint) wants(t Type) bool { return len(e.Types) == 0 || slices.Contains(e.Types, t) }
