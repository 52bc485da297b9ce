-- How people want to be reached. Times of day are minutes, the rest of the
-- times microseconds since 1970, 0 for none.
CREATE TABLE notify_people (
  space      TEXT   NOT NULL,
  user_id    TEXT   NOT NULL,
  mail       TEXT   NOT NULL,
  confirmed  BIGINT NOT NULL,
  topic      TEXT   NOT NULL,
  no_push    BIGINT NOT NULL,
  digest     TEXT   NOT NULL,
  minutes    BIGINT NOT NULL,
  daily_at   BIGINT NOT NULL,
  quiet_from BIGINT NOT NULL,
  quiet_to   BIGINT NOT NULL,
  zone       TEXT   NOT NULL,
  PRIMARY KEY (space, user_id)
);

-- Browsers that take web push.
CREATE TABLE notify_devices (
  space      TEXT   NOT NULL,
  id         TEXT   NOT NULL,
  user_id    TEXT   NOT NULL,
  name       TEXT   NOT NULL,
  endpoint   TEXT   NOT NULL,
  p256dh     TEXT   NOT NULL,
  auth       TEXT   NOT NULL,
  created_at BIGINT NOT NULL,
  PRIMARY KEY (space, id)
);

CREATE UNIQUE INDEX notify_devices_endpoint ON notify_devices (space, endpoint);
CREATE INDEX notify_devices_user ON notify_devices (space, user_id);

-- Requests that were seen. Nothing of what they ask is here.
CREATE TABLE notify_requests (
  space      TEXT   NOT NULL,
  id         TEXT   NOT NULL,
  run        TEXT   NOT NULL,
  agent      TEXT   NOT NULL,
  risk       TEXT   NOT NULL,
  created_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL,
  remind_at  BIGINT NOT NULL,
  then_at    BIGINT NOT NULL,
  team       TEXT   NOT NULL,
  PRIMARY KEY (space, id)
);

CREATE INDEX notify_requests_remind ON notify_requests (space, remind_at);
CREATE INDEX notify_requests_then ON notify_requests (space, then_at);
CREATE INDEX notify_requests_created ON notify_requests (space, created_at);

-- What somebody is to be told, or was. A call is asked about once, even where a
-- request takes another's place.
CREATE TABLE notify_owed (
  space    TEXT   NOT NULL,
  user_id  TEXT   NOT NULL,
  request  TEXT   NOT NULL,
  kind     TEXT   NOT NULL,
  run      TEXT   NOT NULL,
  call_key TEXT   NOT NULL,
  since    BIGINT NOT NULL,
  due_at   BIGINT NOT NULL, -- 0 once a letter was written
  PRIMARY KEY (space, user_id, request, kind)
);

CREATE INDEX notify_owed_due ON notify_owed (space, due_at);
CREATE INDEX notify_owed_call ON notify_owed (space, call_key);
CREATE INDEX notify_owed_since ON notify_owed (space, since);

-- What is to be sent, or was: one notice to one address.
CREATE TABLE notify_letters (
  space    TEXT   NOT NULL,
  id       TEXT   NOT NULL,
  user_id  TEXT   NOT NULL,
  channel  TEXT   NOT NULL,
  device   TEXT   NOT NULL,
  kind     TEXT   NOT NULL,
  run      TEXT   NOT NULL, -- empty for a digest
  state    TEXT   NOT NULL, -- waits, sent, moot, given_up
  tries    BIGINT NOT NULL,
  made_at  BIGINT NOT NULL,
  due_at   BIGINT NOT NULL,
  ended_at BIGINT NOT NULL,
  why      TEXT   NOT NULL,
  PRIMARY KEY (space, id)
);

CREATE INDEX notify_letters_due ON notify_letters (space, channel, state, due_at);
CREATE INDEX notify_letters_made ON notify_letters (space, made_at);

CREATE TABLE notify_letter_requests (
  space   TEXT NOT NULL,
  letter  TEXT NOT NULL,
  request TEXT NOT NULL,
  PRIMARY KEY (space, letter, request)
);

-- Random bytes of this database: what codes are made with.
CREATE TABLE notify_secret (
  space  TEXT NOT NULL,
  secret TEXT NOT NULL,
  PRIMARY KEY (space)
);
