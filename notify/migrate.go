package notify

import (
	"context"
	"crypto/rand"
	"embed"
	"encoding/hex"
	"fmt"

	"github.com/ringi-dev/ringi/internal/sqltable"
)

//go:embed migrations/*.sql
var migrations embed.FS

// migrate brings the schema up to date in one transaction. A schema that is
// newer than this program knows is refused.
func (b *Book) migrate(ctx context.Context) error {
	steps, err := sqltable.Steps(migrations)
	if err != nil {
		return err
	}
	schema := sqltable.Schema{Steps: steps, Table: "notify_migrations", Lock: 0x72696e676e}
	return b.change(ctx, func(tx *tx) error { return schema.Apply(ctx, tx.Tx, b.o.Dialect, tx.now) })
}

// readSecret reads the database's random bytes, and makes them with a new one.
func (b *Book) readSecret(ctx context.Context) error {
	return b.change(ctx, func(tx *tx) error {
		var fresh [32]byte
		rand.Read(fresh[:]) // never fails: the runtime ends the process instead
		if err := tx.exec(`INSERT INTO notify_secret (space, secret) VALUES (?, ?) ON CONFLICT DO NOTHING`, b.o.Space, hex.EncodeToString(fresh[:])); err != nil {
			return err
		}
		var text string
		if err := tx.row(`SELECT secret FROM notify_secret WHERE space = ?`, b.o.Space).Scan(&text); err != nil {
			return fmt.Errorf("read secret: %w", err)
		}
		var err error
		b.secret, err = hex.DecodeString(text)
		return err
	})
}
