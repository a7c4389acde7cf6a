-- +goose Up

-- One row per bundle of events, in the order of writing; events of all merchants share bundles. merchants and ids are what the
-- service packed to find out, without the payload, whether a bundle holds something.
CREATE TABLE trail_heads (
    number    INTEGER PRIMARY KEY,
    first_ms  INTEGER NOT NULL,
    last_ms   INTEGER NOT NULL,
    count     INTEGER NOT NULL,
    bytes     INTEGER NOT NULL, -- of payload and ids
    merchants BLOB    NOT NULL,
    ids       BLOB    NOT NULL
) STRICT;
-- One entry per bundle, not per event: the clock may go back, so the numbers do not tell the time.
CREATE INDEX trail_by_time ON trail_heads (last_ms, number);

CREATE TABLE trail_payloads (
    number  INTEGER PRIMARY KEY,
    payload BLOB NOT NULL
) STRICT;

-- Roll-ups. The key is level, start and merchant in one integer, so that rows are written in the order of time.
CREATE TABLE trail_tallies (
    key     INTEGER PRIMARY KEY,
    through INTEGER NOT NULL, -- the last bundle that is counted
    cells   BLOB    NOT NULL
) STRICT;

CREATE TABLE trail_state (
    only        INTEGER PRIMARY KEY CHECK (only = 1),
    counted     INTEGER NOT NULL, -- every bundle up to this number is counted in the tallies
    bundle_bytes INTEGER NOT NULL,
    tally_bytes INTEGER NOT NULL
) STRICT;
INSERT INTO trail_state VALUES (1, 0, 0, 0);
