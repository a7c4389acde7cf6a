-- +goose Up

-- Planned outages. Without a merchant they are for all; an empty text matches everything.
CREATE TABLE outages (
    id          TEXT    PRIMARY KEY,
    gateway     TEXT    NOT NULL,
    merchant    INTEGER REFERENCES merchants (key) ON DELETE CASCADE,
    bank        TEXT    NOT NULL,
    method_type TEXT    NOT NULL,
    method      TEXT    NOT NULL,
    metadata    BLOB    NOT NULL, -- a JSON object
    start_ms    INTEGER NOT NULL,
    end_ms      INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX outages_merchant ON outages (merchant, end_ms);
