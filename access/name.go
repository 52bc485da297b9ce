package access

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// LocalID is the id of a user whom no provider vouches for: "local:" and a
// word. Others' ids are their issuer and subject.
func LocalID(word string) string { return "local:" + word }

// ClientID is the principal's id of an agent's client.
func ClientID(name string) string { return "client:" + name }

// reserved are the issuers that no user can have: these ids mean something
// else.
var reserved = []string{"client:", "os:", "process:", "token:", "tok_"}

// checkID refuses an id that is no issuer and subject: at most 255 bytes
// without blanks or control characters, as it stands in lists and in what is
// signed.
func checkID(id string) error {
	if issuer, subject, ok := strings.Cut(id, ":"); !ok || issuer == "" || subject == "" {
		return fmt.Errorf("%w: id %q is not issuer:subject", ErrInvalid, id)
	}
	if len(id) > 255 || !utf8.ValidString(id) || strings.ContainsFunc(id, func(r rune) bool {
		return unicode.IsSpace(r) || !unicode.IsPrint(r)
	}) {
		return fmt.Errorf("%w: id %q is longer than 255 bytes, or has blanks or unprintable characters", ErrInvalid, id)
	}
	return nil
}

func checkUserID(id string) error {
	for _, prefix := range reserved {
		if strings.HasPrefix(id, prefix) {
			return fmt.Errorf("%w: ids that begin with %q are no users", ErrInvalid, prefix)
		}
	}
	return checkID(id)
}

var wordForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$`)

// checkWord refuses a name that is no single word.
func checkWord(what, word string) error {
	if !wordForm.MatchString(word) {
		return fmt.Errorf("%w: %s %q is not a word of 1 to 63 letters, digits, and _ . - within", ErrInvalid, what, word)
	}
	return nil
}

// checkText refuses a text for people that is empty, too long, or would not
// stand on one line.
func checkText(what, text string) error {
	if strings.TrimSpace(text) == "" || len(text) > 200 || !utf8.ValidString(text) ||
		strings.ContainsFunc(text, unicode.IsControl) {
		return fmt.Errorf("%w: %s is empty, longer than 200 bytes, or has control characters", ErrInvalid, what)
	}
	return nil
}
