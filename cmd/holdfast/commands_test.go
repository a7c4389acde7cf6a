package main

import (
	"io"
	"strings"
	"testing"
)

// run executes the program with arguments and returns its error.
func run(t *testing.T, args ...string) error {
	t.Helper()
	c := root()
	c.SetOut(io.Discard)
	c.SetErr(io.Discard)
	c.SetArgs(args)
	return c.ExecuteContext(t.Context())
}

func TestUnknownOptionsAreErrors(t *testing.T) {
	for _, c := range commands() {
		if err := run(t, c.Name(), "--no-such-option"); err == nil || !strings.Contains(err.Error(), "no-such-option") {
			t.Errorf("%s --no-such-option: %v", c.Name(), err)
		}
	}
	if err := run(t, "no-such-command"); err == nil {
		t.Error("an unknown command is accepted")
	}
}
