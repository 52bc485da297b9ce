-- Plain SQL that SQLite and PostgreSQL read alike: text, whole numbers, and
-- times as microseconds since 1970, UTC, 0 for none. Every table carries the
-- space, and every query names it. Secrets are here as SHA-256 only.

CREATE TABLE users (
  space      TEXT     NOT NULL,
  id         TEXT     NOT NULL, -- issuer:subject
  name       TEXT     NOT NULL,
  roles      TEXT     NOT NULL, -- separated by spaces, like every list here
  payloads   SMALLINT NOT NULL,
  shared     SMALLINT NOT NULL,
  disabled   SMALLINT NOT NULL,
  created_at BIGINT   NOT NULL,
  PRIMARY KEY (space, id)
);

CREATE TABLE teams (
  space TEXT NOT NULL,
  id    TEXT NOT NULL,
  name  TEXT NOT NULL,
  PRIMARY KEY (space, id)
);

CREATE TABLE members (
  space   TEXT NOT NULL,
  user_id TEXT NOT NULL,
  team    TEXT NOT NULL,
  PRIMARY KEY (space, user_id, team)
);

CREATE INDEX members_team ON members (space, team);

-- A client is what an agent's token stands for. It outlives its tokens, so that
-- nobody else takes its name and reads what it asked for.
CREATE TABLE clients (
  space TEXT NOT NULL,
  id    TEXT NOT NULL, -- client:name
  owner TEXT NOT NULL, -- '' where nobody answers for it
  PRIMARY KEY (space, id)
);

CREATE INDEX clients_owner ON clients (space, owner);

CREATE TABLE tokens (
  space      TEXT   NOT NULL,
  id         TEXT   NOT NULL,
  prefix     TEXT   NOT NULL,
  hash       TEXT   NOT NULL,
  kind       TEXT   NOT NULL,
  name       TEXT   NOT NULL,
  owner      TEXT   NOT NULL,
  client     TEXT   NOT NULL,
  agents     TEXT   NOT NULL,
  scopes     TEXT   NOT NULL,
  made_by    TEXT   NOT NULL,
  granted_by TEXT   NOT NULL,
  created_at BIGINT NOT NULL,
  ends_at    BIGINT NOT NULL,
  used_at    BIGINT NOT NULL,
  revoked_at BIGINT NOT NULL,
  PRIMARY KEY (space, id)
);

CREATE UNIQUE INDEX tokens_prefix ON tokens (space, prefix);
CREATE INDEX tokens_owner ON tokens (space, owner);

CREATE TABLE sessions (
  space      TEXT   NOT NULL,
  hash       TEXT   NOT NULL,
  user_id    TEXT   NOT NULL,
  auth       TEXT   NOT NULL,
  created_at BIGINT NOT NULL,
  seen_at    BIGINT NOT NULL,
  PRIMARY KEY (space, hash)
);

CREATE INDEX sessions_user ON sessions (space, user_id);

CREATE TABLE links (
  space      TEXT   NOT NULL,
  hash       TEXT   NOT NULL,
  user_id    TEXT   NOT NULL,
  created_at BIGINT NOT NULL,
  ends_at    BIGINT NOT NULL,
  used_at    BIGINT NOT NULL,
  PRIMARY KEY (space, hash)
);

CREATE INDEX links_user ON links (space, user_id);

-- The first request with an idempotency key, and its answer once there is one.
CREATE TABLE answers (
  space      TEXT   NOT NULL,
  principal  TEXT   NOT NULL,
  method     TEXT   NOT NULL,
  path       TEXT   NOT NULL,
  idem_key   TEXT   NOT NULL,
  digest     TEXT   NOT NULL, -- of the request's body
  try        TEXT   NOT NULL, -- which try holds the key
  state      TEXT   NOT NULL, -- in_flight, answered, not_kept
  started_at BIGINT NOT NULL,
  status     BIGINT NOT NULL,
  kind       TEXT   NOT NULL, -- content type
  location   TEXT   NOT NULL,
  body       TEXT   NOT NULL, -- base64
  run        TEXT   NOT NULL,
  PRIMARY KEY (space, principal, method, path, idem_key)
);

CREATE INDEX answers_started ON answers (space, started_at);
CREATE INDEX answers_run ON answers (space, run);

CREATE TABLE presence (
  space   TEXT   NOT NULL,
  request TEXT   NOT NULL,
  user_id TEXT   NOT NULL,
  until   BIGINT NOT NULL,
  PRIMARY KEY (space, request, user_id)
);

-- Who changed what in these tables, for auditors. Never a secret.
CREATE TABLE changes (
  space  TEXT   NOT NULL,
  id     TEXT   NOT NULL,
  at     BIGINT NOT NULL,
  by_id  TEXT   NOT NULL,
  auth   TEXT   NOT NULL,
  what   TEXT   NOT NULL,
  target TEXT   NOT NULL,
  detail TEXT   NOT NULL,
  PRIMARY KEY (space, id)
);
