package lab

import (
	"bytes"
	"math"
	"os"
	"strconv"
	"syscall"
	"time"
)

// tick is the unit of /proc/PID/stat: USER_HZ is 100 on every Linux that Go runs on.
const tick = 10 * time.Millisecond

// processorTime returns the processor time a process has used, user and system, in steps of 10 ms; negative when this
// system does not tell.
func processorTime(pid int) time.Duration {
	raw, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return -1
	}
	// The name in brackets may hold spaces; what follows it are numbers, user and system time the 12th and 13th.
	fields := bytes.Fields(raw[bytes.LastIndexByte(raw, ')')+1:])
	if len(fields) < 13 {
		return -1
	}
	user, err1 := strconv.ParseInt(string(fields[11]), 10, 64)
	system, err2 := strconv.ParseInt(string(fields[12]), 10, 64)
	if err1 != nil || err2 != nil {
		return -1
	}
	return time.Duration(user+system) * tick
}

// ownProcessorTime returns the processor time this process has used; negative when unknown.
func ownProcessorTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return -1
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// perRequest returns microseconds of processor time per request, NaN when unknown.
func perRequest(spent time.Duration, requests uint64) float64 {
	if spent < 0 || requests == 0 {
		return math.NaN()
	}
	return float64(spent) / float64(time.Microsecond) / float64(requests)
}

// busy returns the system's load average over the last minute: how many others wanted a processor. NaN when unknown.
func busy() float64 {
	raw, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return math.NaN()
	}
	first, _, _ := bytes.Cut(raw, []byte(" "))
	load, err := strconv.ParseFloat(string(first), 64)
	if err != nil {
		return math.NaN()
	}
	return load
}

// residentBytes returns the memory that a process holds; NaN when unknown.
func residentBytes(pid int) float64 {
	raw, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/statm")
	fields := bytes.Fields(raw)
	if err != nil || len(fields) < 2 {
		return math.NaN()
	}
	pages, err := strconv.ParseFloat(string(fields[1]), 64)
	if err != nil {
		return math.NaN()
	}
	return pages * float64(os.Getpagesize())
}
