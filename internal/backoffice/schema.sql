-- Amounts are whole cents of the order's currency. Dates are ISO 8601.
CREATE TABLE customers (
  id         TEXT PRIMARY KEY,
  name       TEXT NOT NULL,
  mail       TEXT NOT NULL UNIQUE,
  street     TEXT NOT NULL,
  postcode   TEXT NOT NULL,
  city       TEXT NOT NULL,
  country    TEXT NOT NULL,
  bank       TEXT NOT NULL,
  card_last4 TEXT NOT NULL,
  -- version counts the changes of the address.
  version    INTEGER NOT NULL DEFAULT 1
) STRICT;

CREATE TABLE orders (
  id          TEXT PRIMARY KEY,
  customer_id TEXT NOT NULL REFERENCES customers (id),
  status      TEXT NOT NULL CHECK (status IN ('open', 'shipped', 'delivered', 'cancelled')),
  currency    TEXT NOT NULL,
  placed_on   TEXT NOT NULL,
  note        TEXT NOT NULL DEFAULT ''
) STRICT;
CREATE INDEX orders_of_customer ON orders (customer_id);

CREATE TABLE items (
  order_id   TEXT NOT NULL REFERENCES orders (id),
  line       INTEGER NOT NULL,
  name       TEXT NOT NULL,
  quantity   INTEGER NOT NULL CHECK (quantity > 0),
  unit_cents INTEGER NOT NULL CHECK (unit_cents >= 0),
  PRIMARY KEY (order_id, line)
) STRICT;

-- A refund is sent to the bank, and booked once the bank has said yes. key is
-- the idempotency key of the call: a repeat finds its first row.
CREATE TABLE refunds (
  id           INTEGER PRIMARY KEY AUTOINCREMENT,
  order_id     TEXT NOT NULL REFERENCES orders (id),
  amount_cents INTEGER NOT NULL CHECK (amount_cents > 0),
  currency     TEXT NOT NULL,
  reason       TEXT NOT NULL,
  state        TEXT NOT NULL CHECK (state IN ('sent', 'booked')),
  key          TEXT NOT NULL UNIQUE,
  decider      TEXT NOT NULL DEFAULT '',
  at           TEXT NOT NULL
) STRICT;
CREATE INDEX refunds_of_order ON refunds (order_id);

CREATE TABLE outbox (
  id        INTEGER PRIMARY KEY AUTOINCREMENT,
  recipient TEXT NOT NULL,
  subject   TEXT NOT NULL,
  body      TEXT NOT NULL,
  key       TEXT NOT NULL UNIQUE,
  at        TEXT NOT NULL
) STRICT;

CREATE TABLE policies (
  topic TEXT PRIMARY KEY,
  title TEXT NOT NULL,
  body  TEXT NOT NULL
) STRICT;
