package vendor

import "strings"

// Seal keeps a provider's own words in a turn, byte for byte. Name says whose
// they are; it holds no line break.
func Seal(name, data string) string { return name + "\n" + data }

// Open gives back what was sealed under the same name. Another's words are
// none: a conversation may have moved.
func Open(name, opaque string) (data string, ok bool) {
	whose, data, ok := strings.Cut(opaque, "\n")
	if !ok || whose != name {
		return "", false
	}
	return data, true
}
