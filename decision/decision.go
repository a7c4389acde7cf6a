// Package decision is the adaptive decision service: it picks one option for a request, says how likely that pick was, and
// learns from the outcome that is reported later.
//
// It holds the rules only: no HTTP, no SQL, no files. What it needs of a store is in storage.go. Its invariants: every
// eligible action has probability at least floor/K; a decide touches no disk and no lock that another capsule uses; a
// reward counts once; a decision id means one decision for ever; the model after a restart equals the newest snapshot plus
// the replay of later rewards, byte for byte.
//
// It refuses what it cannot keep: a decide or a reward that the queue or the storage has no room for is Unavailable, never
// answered and lost. Its goroutines belong to a Service and end in Close: one hands decisions to the storage, one saves
// models, one sweeps for default rewards and old batches, and one for each capsule whose event ids are read for its filter.
package decision
