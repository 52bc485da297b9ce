// Package nearest finds the word that somebody meant.
package nearest

import (
	"iter"
	"strings"
)

// longest is the longest word that is looked up, in bytes: nothing is near a
// longer one, and the work grows with its length.
const longest = 128

// Of returns the known word that is nearest to a mistyped one, letter case
// aside: the fewest letters added, removed or exchanged (Levenshtein), and no
// more than half of the mistyped one's. Six letters or more that begin a known
// word count as one letter away. Of equals the first wins; "" where none is
// near.
func Of(word string, known iter.Seq[string]) string {
	if len(word) > longest {
		return ""
	}
	lower := strings.ToLower(word)
	best, least := "", len(lower)/2+1
	for k := range known {
		other := strings.ToLower(k)
		d := distance(lower, other)
		if len(lower) >= 6 && strings.HasPrefix(other, lower) {
			d = min(d, 1)
		}
		if d < least {
			best, least = k, d
		}
	}
	return best
}

// distance is Levenshtein's, over bytes.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
