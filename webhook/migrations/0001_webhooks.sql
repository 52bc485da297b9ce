-- Plain SQL that SQLite and PostgreSQL read alike: text, whole numbers, and
-- times as microseconds since 1970, UTC, 0 for none. Every table carries the
-- space, and every query names it. No address and no secret is here.

-- Where an endpoint stands in the feed of the store.
CREATE TABLE webhook_endpoints (
  space        TEXT   NOT NULL,
  name         TEXT   NOT NULL,
  store        TEXT   NOT NULL, -- the id of the store that place counts in
  place        BIGINT NOT NULL, -- the number of the last record that was worked on
  made_at      BIGINT NOT NULL,
  disabled_at  BIGINT NOT NULL,
  disabled_why TEXT   NOT NULL,
  PRIMARY KEY (space, name)
);

CREATE TABLE webhook_deliveries (
  space    TEXT   NOT NULL,
  endpoint TEXT   NOT NULL,
  id       TEXT   NOT NULL, -- webhook-id
  type     TEXT   NOT NULL,
  run      TEXT   NOT NULL,
  body     TEXT   NOT NULL,
  state    TEXT   NOT NULL, -- waiting, delivered, dead
  attempts BIGINT NOT NULL, -- begun
  made_at  BIGINT NOT NULL,
  due_at   BIGINT NOT NULL, -- of a waiting one
  ended_at BIGINT NOT NULL, -- of the others
  status   BIGINT NOT NULL, -- of the last answer, 0 where there was none
  error    TEXT   NOT NULL, -- why the last try failed
  PRIMARY KEY (space, endpoint, id)
);

CREATE INDEX webhook_deliveries_due ON webhook_deliveries (space, endpoint, state, due_at);
CREATE INDEX webhook_deliveries_ended ON webhook_deliveries (space, state, ended_at);
CREATE INDEX webhook_deliveries_run ON webhook_deliveries (space, run);
