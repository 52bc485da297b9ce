-- Which requests somebody had before him.
CREATE TABLE opened (
  space   TEXT   NOT NULL,
  user_id TEXT   NOT NULL,
  request TEXT   NOT NULL,
  at      BIGINT NOT NULL,
  PRIMARY KEY (space, user_id, request)
);
CREATE INDEX opened_at ON opened (space, at);

-- Lists that somebody keeps under a name.
CREATE TABLE views (
  space   TEXT NOT NULL,
  user_id TEXT NOT NULL,
  name    TEXT NOT NULL,
  query   TEXT NOT NULL,
  PRIMARY KEY (space, user_id, name)
);
