-- Times are whole microseconds since 1970, UTC; NULL stands for "none".
-- Every table of a tenant's data carries its space, and every query names it
-- but the one that looks for runs without an owner.

-- Single values of the store itself: its id, its flags, its counters.
CREATE TABLE meta (
  key   TEXT PRIMARY KEY,
  value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- One row a run: an index over its records, with the head of the chain. The
-- row number is the order in which runs were made.
CREATE TABLE runs (
  n          INTEGER PRIMARY KEY,
  space      TEXT    NOT NULL,
  id         TEXT    NOT NULL,
  thread     TEXT    NOT NULL,
  agent      TEXT    NOT NULL,
  parent     TEXT    NOT NULL,
  status     TEXT    NOT NULL,
  reason     TEXT    NOT NULL,
  open       INTEGER, -- 1 until the run has ended, then NULL
  seq        INTEGER NOT NULL,
  head       BLOB    NOT NULL,
  mac        TEXT    NOT NULL,
  owner      TEXT    NOT NULL,
  epoch      INTEGER NOT NULL,
  attempts   INTEGER NOT NULL,
  corrupt    TEXT    NOT NULL,
  deadline   INTEGER,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT;

CREATE UNIQUE INDEX runs_id ON runs (space, id);
-- One open run a thread. Only the first and the last commit of a run touch it.
CREATE UNIQUE INDEX runs_open ON runs (space, thread) WHERE open = 1;
-- A thread's runs, and a space's, in the order in which they were made.
CREATE INDEX runs_thread ON runs (space, thread);
CREATE INDEX runs_space ON runs (space);
-- What may wait for an owner, over all spaces.
CREATE INDEX runs_ready ON runs (status)
  WHERE status = 'queued' OR status = 'running';
CREATE INDEX runs_deadline ON runs (deadline) WHERE open = 1 AND deadline IS NOT NULL;

-- The log. The key is a row number, so that what one transaction writes lies
-- together on few pages; the unique index finds a run's records.
CREATE TABLE records (
  n       INTEGER PRIMARY KEY,
  space   TEXT    NOT NULL,
  run     TEXT    NOT NULL,
  seq     INTEGER NOT NULL,
  kind    TEXT    NOT NULL,
  head    BLOB    NOT NULL,
  payload BLOB,
  salt    BLOB,
  hash    BLOB    NOT NULL
) STRICT;
CREATE UNIQUE INDEX records_run ON records (space, run, seq);

-- The inbox: a projection of the log, never the source of a grant. The row
-- number follows created_at (2,048 rows a microsecond), so that what is found by
-- row numbers comes in the inbox's order. people and teams are JSON lists, ''
-- for an empty one.
CREATE TABLE requests (
  n          INTEGER PRIMARY KEY,
  space      TEXT    NOT NULL,
  id         TEXT    NOT NULL,
  run        TEXT    NOT NULL,
  thread     TEXT    NOT NULL,
  call       TEXT    NOT NULL,
  kind       TEXT    NOT NULL,
  tool       TEXT    NOT NULL,
  state      TEXT    NOT NULL,
  digest     TEXT    NOT NULL,
  agent      TEXT    NOT NULL,
  initiator  TEXT    NOT NULL,
  people     TEXT    NOT NULL,
  teams      TEXT    NOT NULL,
  text       TEXT    NOT NULL,
  created_at INTEGER NOT NULL,
  expires_at INTEGER,
  decided_at INTEGER,
  use_by     INTEGER,
  decided_by TEXT    NOT NULL,
  deadline   INTEGER NOT NULL GENERATED ALWAYS AS (ifnull(expires_at, 9223372036854775807)) VIRTUAL
) STRICT;
CREATE UNIQUE INDEX requests_id ON requests (space, id);
-- The inbox's page: expires_at stands in the index so that a pending request
-- past its time is passed over without a look at its row.
CREATE INDEX requests_state ON requests (space, state, created_at, id, expires_at);
CREATE INDEX requests_run ON requests (space, run);
-- What was settled in a time: decided, or expired and noted so.
CREATE INDEX requests_decided ON requests (space, decided_at) WHERE decided_at IS NOT NULL;
CREATE INDEX requests_expired ON requests (space, expires_at) WHERE state = 'expired';
-- The inbox by deadline; none comes last.
CREATE INDEX requests_soonest ON requests (space, deadline, created_at, id)
  WHERE state = 'pending';

-- What requests are found by: one document a request, of terms that stand for
-- its columns and for the pieces of its text; see terms.go. Nothing is kept but
-- which rows have a term, and what is deleted goes at once (secure-delete).
CREATE VIRTUAL TABLE request_terms USING fts5 (
  terms, content = '', columnsize = 0, detail = none, tokenize = 'ascii');
INSERT INTO request_terms (request_terms, rank) VALUES ('secure-delete', 1);

-- Heartbeats: an owner lives until its time.
CREATE TABLE owners (
  id    TEXT PRIMARY KEY,
  until INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Tool definitions by digest.
CREATE TABLE tools (
  digest     TEXT PRIMARY KEY,
  definition BLOB
) STRICT;

-- Refused attempts and late results: beside the chain, and bounded.
CREATE TABLE attempts (
  n       INTEGER PRIMARY KEY,
  space   TEXT    NOT NULL,
  run     TEXT    NOT NULL,
  request TEXT    NOT NULL,
  call    TEXT    NOT NULL,
  kind    TEXT    NOT NULL,
  by      TEXT    NOT NULL,
  channel TEXT    NOT NULL,
  detail  TEXT    NOT NULL,
  at      INTEGER NOT NULL
) STRICT;
CREATE INDEX attempts_run ON attempts (space, run);

-- The key ids that this store has used, with their check values.
CREATE TABLE keys (
  id    TEXT PRIMARY KEY,
  value TEXT NOT NULL
) STRICT, WITHOUT ROWID;
