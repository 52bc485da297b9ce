package strictjson

import (
	"maps"
	"slices"
	"strings"
	"unicode"
)

// maxTwins bounds what CaseTwins returns: it is a warning, not a list to work
// through.
const maxTwins = 32

// Twins are keys of one object that differ only by letter case.
type Twins struct {
	Path string   // JSON pointer of the object, for reading: keys above 40 bytes are cut; empty at the top
	Keys []string // two or more, sorted by their bytes
}

// CaseTwins finds, anywhere in v, keys of one object that differ only by
// letter case, under Unicode simple folding: U+017F counts as s, U+212A as k.
// They are different keys, and a reader that ignores case takes one for the
// other. The order is stable and at most 32 groups are returned. Where there
// are none, objects of up to 8 keys cost no memory.
func CaseTwins(v any) []Twins {
	if !holdsTwins(v) {
		return nil
	}
	var found []Twins
	gatherTwins(v, nil, &found)
	return found
}

func holdsTwins(v any) bool {
	switch v := v.(type) {
	case []any:
		return slices.ContainsFunc(v, holdsTwins)
	case map[string]any:
		if hasTwins(v) {
			return true
		}
		for _, item := range v {
			if holdsTwins(item) {
				return true
			}
		}
	}
	return false
}

// hasTwins compares each with each in a small object, which costs no memory;
// a big one is folded, which costs no square.
func hasTwins(obj map[string]any) bool {
	if len(obj) < 2 {
		return false
	}
	if len(obj) > 8 {
		return len(foldGroups(obj)) > 0
	}
	var room [8]string
	keys := room[:0]
	for key := range obj {
		for _, other := range keys {
			if strings.EqualFold(key, other) {
				return true
			}
		}
		keys = append(keys, key)
	}
	return false
}

// gatherTwins walks in a stable order, so that the same value is always
// flagged in the same words.
func gatherTwins(v any, path []byte, found *[]Twins) {
	if len(*found) == maxTwins {
		return
	}
	switch v := v.(type) {
	case []any:
		for i, item := range v {
			gatherTwins(item, AppendPointer(path, index(i)), found)
		}
	case map[string]any:
		for _, keys := range foldGroups(v) {
			if len(*found) < maxTwins {
				*found = append(*found, Twins{Path: string(path), Keys: keys})
			}
		}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			gatherTwins(v[key], AppendPointer(path, cut(key, excerptBytes)), found)
		}
	}
}

// foldGroups returns the groups of twins among the keys, in a stable order.
func foldGroups(obj map[string]any) [][]string {
	byFold := make(map[string][]string, len(obj))
	for key := range obj {
		folded := fold(key)
		byFold[folded] = append(byFold[folded], key)
	}
	var groups [][]string
	for _, keys := range byFold {
		if len(keys) > 1 {
			slices.Sort(keys)
			groups = append(groups, keys)
		}
	}
	slices.SortFunc(groups, func(a, b []string) int { return strings.Compare(a[0], b[0]) })
	return groups
}

// fold maps every rune to the smallest of those that simple folding holds
// equal, so that fold(a) == fold(b) exactly if strings.EqualFold(a, b).
func fold(s string) string {
	return strings.Map(func(r rune) rune {
		least := r
		for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
			least = min(least, f)
		}
		return least
	}, s)
}
