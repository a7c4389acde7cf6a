-- +goose Up

CREATE TABLE jobs (
    tenant     TEXT    NOT NULL,
    id         TEXT    NOT NULL,
    name       TEXT    NOT NULL,
    created_ms INTEGER NOT NULL,
    PRIMARY KEY (tenant, id)
) STRICT, WITHOUT ROWID;

-- AUTOINCREMENT: a key is never given twice, so that a late write for a deleted capsule finds nothing.
CREATE TABLE capsules (
    key          INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant       TEXT    NOT NULL,
    job          TEXT    NOT NULL,
    name         TEXT    NOT NULL,
    created_ms   INTEGER NOT NULL,
    installed_ms INTEGER NOT NULL,
    spec         TEXT    NOT NULL,
    program      TEXT,
    UNIQUE (tenant, job, name)
) STRICT;

-- What changes with every batch and every reward. It is apart from capsules so that a spec of many KB is not rewritten
-- with each of them.
CREATE TABLE tallies (
    capsule    INTEGER PRIMARY KEY,
    purges     INTEGER NOT NULL DEFAULT 0,
    last_seq   INTEGER NOT NULL DEFAULT 0,
    decisions  INTEGER NOT NULL DEFAULT 0,
    rewards    INTEGER NOT NULL DEFAULT 0,
    erased     INTEGER NOT NULL DEFAULT 0, -- rewards removed since: rewards + erased = last_seq
    bytes      INTEGER NOT NULL DEFAULT 0, -- of payload
    first_ms   INTEGER NOT NULL DEFAULT 0, -- of the decisions there now
    last_ms    INTEGER NOT NULL DEFAULT 0,
    tail_ms    INTEGER NOT NULL DEFAULT 0, -- end of the newest batch in order
    longest_ms INTEGER NOT NULL DEFAULT 0, -- length of the longest late batch
    seed       INTEGER NOT NULL DEFAULT 0,
    draws      INTEGER NOT NULL DEFAULT 0
) STRICT;

-- One row per batch and capsule. late is NULL for a batch that starts no earlier than the one before ended: those have the
-- same order by first_ms, by last_ms and by id. Others have the number of their lane, which goes by their length, so that a
-- look at a moment goes over few batches that do not cover it.
CREATE TABLE batches (
    id       INTEGER PRIMARY KEY,
    capsule  INTEGER NOT NULL,
    late     INTEGER,
    first_ms INTEGER NOT NULL,
    last_ms  INTEGER NOT NULL,
    count    INTEGER NOT NULL,
    payload  BLOB    NOT NULL
) STRICT;
CREATE INDEX batches_by_end ON batches (capsule, late, last_ms, first_ms);
CREATE INDEX late_by_start ON batches (capsule, late, first_ms, last_ms) WHERE late IS NOT NULL;

-- Ids that clients made. Ids of the server carry their time in them.
CREATE TABLE events (
    capsule INTEGER NOT NULL,
    id      TEXT    NOT NULL,
    ms      INTEGER NOT NULL,
    PRIMARY KEY (capsule, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE rewards (
    capsule    INTEGER NOT NULL,
    seq        INTEGER NOT NULL,
    time_ms    INTEGER NOT NULL,
    key        TEXT    NOT NULL,
    decision   TEXT, -- NULL when it is the key, as under the usual rule: half the bytes, and no second index entry
    value      REAL    NOT NULL,
    normalized REAL    NOT NULL,
    learned    INTEGER NOT NULL,
    detail     TEXT,
    PRIMARY KEY (capsule, seq)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX rewards_by_key ON rewards (capsule, key);
CREATE INDEX rewards_by_decision ON rewards (capsule, decision) WHERE decision IS NOT NULL;

-- The order of snapshots and publications is the order of id: a version may go back when a model is rebuilt.
CREATE TABLE snapshots (
    id      INTEGER PRIMARY KEY AUTOINCREMENT,
    capsule INTEGER NOT NULL,
    version INTEGER NOT NULL,
    seq     INTEGER NOT NULL,
    time_ms INTEGER NOT NULL,
    bytes   BLOB    NOT NULL
) STRICT;
CREATE INDEX snapshots_of ON snapshots (capsule, id);

CREATE TABLE publications (
    id      INTEGER PRIMARY KEY AUTOINCREMENT,
    capsule INTEGER NOT NULL,
    tag     TEXT    NOT NULL,
    section TEXT    NOT NULL,
    version INTEGER NOT NULL,
    seq     INTEGER NOT NULL,
    time_ms INTEGER NOT NULL,
    bytes   BLOB    NOT NULL
) STRICT;
CREATE INDEX publications_of ON publications (capsule, id);
CREATE UNIQUE INDEX publications_by_tag ON publications (capsule, tag);

-- By name and not by key: trails outlive the capsule and go on when it is made again.
CREATE TABLE audits (
    tenant  TEXT    NOT NULL,
    job     TEXT    NOT NULL,
    capsule TEXT    NOT NULL,
    seq     INTEGER NOT NULL,
    time_ms INTEGER NOT NULL,
    event   TEXT    NOT NULL,
    detail  TEXT    NOT NULL,
    PRIMARY KEY (tenant, job, capsule, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE held (
    capsule INTEGER NOT NULL,
    event   TEXT    NOT NULL,
    time_ms INTEGER NOT NULL,
    record  BLOB    NOT NULL,
    rewards TEXT,
    PRIMARY KEY (capsule, event)
) STRICT, WITHOUT ROWID;
CREATE INDEX held_by_time ON held (time_ms);

CREATE TABLE tokens (
    hash     TEXT    PRIMARY KEY,
    scope    TEXT    NOT NULL,
    label    TEXT    NOT NULL,
    created  INTEGER NOT NULL, -- Unix seconds, as the others
    expires  INTEGER NOT NULL, -- 0: never
    used     INTEGER NOT NULL  -- 0: never
) STRICT, WITHOUT ROWID;
