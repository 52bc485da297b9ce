package access

import (
	"context"
	"fmt"
	"strings"

	"github.com/ringi-dev/ringi"
)

// NoteReveal records that somebody had masked values of a request shown, and at
// which places, before they are: who cannot be recorded sees nothing. The caller
// has asked [May] for [ApprovalsReveal]. It is in [Directory.Changes] as
// "request.revealed", without the values.
func (d *Directory) NoteReveal(ctx context.Context, by ringi.Principal, request string, places []string) error {
	if by.IsZero() {
		return fmt.Errorf("record reveal: %w", ringi.ErrNoPrincipal)
	}
	err := d.change(ctx, func(tx *tx) error {
		return tx.note(Who{Principal: by}, "request.revealed", request, strings.Join(places, " "))
	})
	if err != nil {
		return fmt.Errorf("record reveal: %w", err)
	}
	return nil
}
