-- +goose Up
-- Rows live for the moment in which the store is asked whether it works.
CREATE TABLE probes (id INTEGER PRIMARY KEY) STRICT;
