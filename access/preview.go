package access

import (
	"github.com/ringi-dev/ringi"
)

// SeesPreview reports whether w is shown previews of a data class: whether one
// of his roles goes so far ([Options.Previews]). Who he is and whose request it
// is say [May] and his sight; this narrows both. Nobody is shown none.
func (w Who) SeesPreview(class ringi.DataClass) bool {
	if w.Principal.IsZero() {
		return false
	}
	if w.previews == nil {
		return true
	}
	for role, ceiling := range w.previews {
		if w.Has(role) && class.Rank() <= ceiling.Rank() {
			return true
		}
	}
	return false
}
