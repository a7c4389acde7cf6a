-- +goose Up

-- The rowid is the order of creation. An owner need not be a merchant.
CREATE TABLE algorithms (
    number      INTEGER PRIMARY KEY,
    id          TEXT    NOT NULL UNIQUE,
    owner       TEXT    NOT NULL,
    name        TEXT    NOT NULL,
    description TEXT    NOT NULL,
    purpose     INTEGER NOT NULL,
    data        TEXT    NOT NULL, -- {"type":…,"data":…}
    metadata    TEXT    NOT NULL, -- JSON, empty when there is none
    created_us  INTEGER NOT NULL,
    modified_us INTEGER NOT NULL
) STRICT;

CREATE INDEX algorithms_owner ON algorithms (owner, number);

CREATE TABLE active_algorithms (
    owner     TEXT    NOT NULL,
    purpose   INTEGER NOT NULL,
    algorithm TEXT    NOT NULL REFERENCES algorithms (id),
    PRIMARY KEY (owner, purpose)
) STRICT, WITHOUT ROWID;
