package server

import (
	"bytes"
	"os"
	"runtime/debug"
	"strconv"
)

// gcPercent lets the heap grow to five times its live part between collections: most of a request's garbage dies with it.
const gcPercent = 400

// TuneMemory sets the garbage collector for a server: fewer collections while memory is plenty, and a soft limit of three
// quarters of what this machine or its control group has. GOGC and GOMEMLIMIT in the environment win. main calls it once.
// It returns the limit in bytes, 0 when none was set.
func TuneMemory() int64 {
	if os.Getenv("GOMEMLIMIT") != "" {
		return 0
	}
	limit := memory() / 4 * 3
	if limit <= 0 {
		return 0 // without a limit a larger heap would be a risk, so the collector stays as it is
	}
	debug.SetMemoryLimit(limit)
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	return limit
}

// memory returns the bytes there are for this process, 0 when that cannot be told.
func memory() int64 {
	machine := int64(0)
	if text, err := os.ReadFile("/proc/meminfo"); err == nil {
		fields := bytes.Fields(text)
		if len(fields) > 1 && string(fields[0]) == "MemTotal:" {
			kib, _ := strconv.ParseInt(string(fields[1]), 10, 64)
			machine = kib << 10
		}
	}
	if text, err := os.ReadFile("/sys/fs/cgroup/memory.max"); err == nil {
		if group, err := strconv.ParseInt(string(bytes.TrimSpace(text)), 10, 64); err == nil && (machine == 0 || group < machine) {
			return group
		}
	}
	return machine
}
