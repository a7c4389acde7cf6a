-- +goose Up

-- Every change of a score, in one order for all merchants. The number is given by the service; nothing is looked up here but
-- ranges of it, so that an append touches one page.
CREATE TABLE outcomes (
    seq      INTEGER PRIMARY KEY,
    time_ms  INTEGER NOT NULL,
    merchant INTEGER NOT NULL,
    kind     INTEGER NOT NULL, -- 1 push, 2 amendment, 3 penalty alone, 4 reset
    payment  TEXT    NOT NULL,
    gateway  TEXT    NOT NULL,
    cell     TEXT    NOT NULL, -- parts led by U+001F; empty when no window moves
    value    INTEGER NOT NULL,
    size     INTEGER NOT NULL,
    number   INTEGER NOT NULL,
    standing TEXT    NOT NULL, -- likewise; empty when the elimination score stays
    move     INTEGER NOT NULL,
    factor   REAL    NOT NULL,
    floor    REAL    NOT NULL,
    raised   REAL    NOT NULL
) STRICT;

-- Decisions that feedback may still come for; the form of a payload is docs/format/gateway-store.md.
CREATE TABLE chunks (
    id       INTEGER PRIMARY KEY,
    first_ms INTEGER NOT NULL,
    last_ms  INTEGER NOT NULL,
    count    INTEGER NOT NULL,
    payload  BLOB    NOT NULL
) STRICT;

-- A merchant's scores as of the outcome seq; key 0 holds those of all merchants together.
CREATE TABLE scores (
    merchant INTEGER PRIMARY KEY,
    seq      INTEGER NOT NULL,
    payload  BLOB    NOT NULL
) STRICT;

-- One row: every outcome up to saved is in scores, and last is the greatest number given when that was written.
CREATE TABLE progress (
    one   INTEGER PRIMARY KEY CHECK (one = 1),
    saved INTEGER NOT NULL,
    last  INTEGER NOT NULL
) STRICT;
INSERT INTO progress VALUES (1, 0, 0);
