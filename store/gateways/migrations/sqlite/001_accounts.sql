-- +goose Up

-- AUTOINCREMENT: a key is never given twice, so that a late write for a deleted merchant finds nothing.
CREATE TABLE merchants (
    key           INTEGER PRIMARY KEY AUTOINCREMENT,
    id            TEXT    NOT NULL UNIQUE,
    name          TEXT    NOT NULL,
    created_ms    INTEGER NOT NULL,
    enabled       INTEGER NOT NULL,
    priority      TEXT    NOT NULL,
    code_priority INTEGER NOT NULL,
    category_code TEXT    NOT NULL,
    country       TEXT    NOT NULL,
    input         TEXT    NOT NULL -- what it was created with as its decider's input
) STRICT;

-- API keys: their SHA-256, never themselves. The rowid is the order of their making.
CREATE TABLE api_keys (
    number      INTEGER PRIMARY KEY,
    id          TEXT    NOT NULL UNIQUE,
    merchant    INTEGER NOT NULL REFERENCES merchants (key) ON DELETE CASCADE,
    hash        TEXT    NOT NULL UNIQUE, -- hex
    prefix      TEXT    NOT NULL,
    description TEXT    NOT NULL,
    active      INTEGER NOT NULL,
    created_ms  INTEGER NOT NULL
) STRICT;

CREATE INDEX api_keys_merchant ON api_keys (merchant);

-- One row per merchant and feature, so that switching one never touches another.
CREATE TABLE features (
    merchant INTEGER NOT NULL REFERENCES merchants (key) ON DELETE CASCADE,
    feature  TEXT    NOT NULL,
    enabled  INTEGER NOT NULL, -- 0: not even where the deployment has it on
    rollout  INTEGER NOT NULL, -- percent
    PRIMARY KEY (merchant, feature)
) STRICT, WITHOUT ROWID;

-- One document per merchant and kind: a configuration is replaced whole and read whole.
CREATE TABLE merchant_settings (
    merchant INTEGER NOT NULL REFERENCES merchants (key) ON DELETE CASCADE,
    kind     TEXT    NOT NULL,
    document BLOB    NOT NULL,
    PRIMARY KEY (merchant, kind)
) STRICT, WITHOUT ROWID;
