-- Sums by name, for limits over several calls: read and written in the commit
-- that starts a call.
CREATE TABLE ledger (
  space  TEXT    NOT NULL,
  name   TEXT    NOT NULL,
  amount INTEGER NOT NULL,
  PRIMARY KEY (space, name)
) STRICT, WITHOUT ROWID;
