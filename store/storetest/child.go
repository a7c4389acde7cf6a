package storetest

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"
)

// childEnv names, in a child's environment, the function it runs instead of the tests.
const childEnv = "HOLDFAST_STORETEST_CHILD"

// RunChild is the first thing a package's TestMain calls: in a child process it runs the function the child was started
// for and reports child and the code to exit with; in the test process it does nothing.
func RunChild(children map[string]func(args []string) error) (code int, child bool) {
	name := os.Getenv(childEnv)
	if name == "" {
		return 0, false
	}
	run, ok := children[name]
	if !ok {
		fmt.Fprintf(os.Stderr, "no child %q\n", name)
		return 2, true
	}
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1, true
	}
	return 0, true
}

// Child is another process that runs one function of this test binary.
type Child struct {
	cmd   *exec.Cmd
	out   *io.PipeReader
	lines chan string
	done  chan error
}

// Start runs the child function name with args. What it prints on standard output is read line by line. The child is
// killed when the test ends.
func Start(tb testing.TB, name string, args ...string) *Child {
	tb.Helper()
	exe, err := os.Executable()
	if err != nil {
		tb.Fatal(err)
	}
	cmd := exec.Command(exe, args...)
	cmd.Env = append(os.Environ(), childEnv+"="+name)
	cmd.Stderr = os.Stderr
	out, in := io.Pipe()
	cmd.Stdout = in
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	c := &Child{cmd: cmd, out: out, lines: make(chan string), done: make(chan error, 1)}
	go func() {
		defer close(c.lines)
		scanner := bufio.NewScanner(out)
		for scanner.Scan() {
			c.lines <- scanner.Text()
		}
	}()
	go func() {
		err := cmd.Wait()
		in.Close()
		c.done <- err
	}()
	tb.Cleanup(func() { c.Kill() })
	return c
}

// Lines reads the next n lines; fewer mean that the child has ended.
func (c *Child) Lines(n int) []string {
	var got []string
	for range n {
		line, ok := <-c.lines
		if !ok {
			break
		}
		got = append(got, line)
	}
	return got
}

// Kill ends the child at once, as kill -9 does, and returns the lines that were not read yet. A line is complete or not
// returned: a child is to write each with one call.
func (c *Child) Kill() []string {
	_ = c.cmd.Process.Kill() // it may have ended by itself
	return c.rest()
}

// Wait lets the child end by itself and returns the lines that were not read yet and how it ended.
func (c *Child) Wait() ([]string, error) {
	lines := c.rest()
	err := <-c.done
	c.done <- err
	return lines, err
}

func (c *Child) rest() []string {
	var got []string
	for line := range c.lines {
		got = append(got, line)
	}
	return got
}
