-- +goose Up

CREATE TABLE users (
    id         TEXT    PRIMARY KEY,
    email      TEXT    NOT NULL UNIQUE, -- lower case
    hash       TEXT    NOT NULL,        -- bcrypt
    active     INTEGER NOT NULL,
    verified   INTEGER NOT NULL,
    created_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- The rowid is the order of joining. A membership goes with its merchant.
CREATE TABLE memberships (
    number     INTEGER PRIMARY KEY,
    user       TEXT    NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    merchant   TEXT    NOT NULL REFERENCES merchants (id) ON DELETE CASCADE,
    role       TEXT    NOT NULL,
    created_ms INTEGER NOT NULL,
    UNIQUE (user, merchant)
) STRICT;

CREATE INDEX memberships_merchant ON memberships (merchant);

-- Tickets to reset a password or to verify an e-mail: their SHA-256, never themselves.
CREATE TABLE tickets (
    hash    TEXT    NOT NULL UNIQUE,
    user    TEXT    NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    purpose TEXT    NOT NULL,
    expires INTEGER NOT NULL, -- Unix seconds
    PRIMARY KEY (user, purpose)
) STRICT, WITHOUT ROWID;

-- Sessions that are over before their time: one ("session/ID"), a user's or a merchant's made before a moment.
CREATE TABLE endings (
    key    TEXT    PRIMARY KEY,
    before INTEGER NOT NULL, -- Unix seconds
    spared TEXT    NOT NULL, -- the one session that is not over
    until  INTEGER NOT NULL  -- Unix seconds
) STRICT, WITHOUT ROWID;

CREATE INDEX endings_until ON endings (until);
