-- +goose Up

-- One document per merchant: a cost model is replaced whole and read whole.
CREATE TABLE seed_costs (
    merchant INTEGER PRIMARY KEY REFERENCES merchants (key) ON DELETE CASCADE,
    document BLOB    NOT NULL
) STRICT;

-- What the operator imported for all merchants, one document per table.
CREATE TABLE deployment_tables (
    name     TEXT PRIMARY KEY,
    document BLOB NOT NULL
) STRICT, WITHOUT ROWID;
