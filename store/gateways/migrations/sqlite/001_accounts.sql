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
    country       TEXT    NOT NULL
) STRICT;
