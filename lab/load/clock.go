package load

import "time"

// Clock names one of the three ways this lab times a request. They are defined here and nowhere else.
type Clock uint8

// The clocks.
const (
	// FromIntended runs from the moment the request should have been sent to the last byte of its answer. In an open loop that
	// is its place in the schedule, so a server that stalls is charged for everyone who had to wait. In a closed loop it is the
	// moment the worker became free, so that under churn it includes the dial.
	FromIntended Clock = iota
	// FromSent runs from just before the first byte is written on an open connection to the last byte of the answer.
	FromSent
	// ServerTimer is what the server says it spent, from its Server-Timing header; absent when it sends none.
	ServerTimer
	clocks
)

var clockNames = [...]string{"intended to last byte", "sent to last byte", "server timer"}

// String describes the clock in words.
func (c Clock) String() string { return clockNames[c] }

// stamps are the readings of one request.
type stamps struct {
	intended, sent, done time.Time
	server               time.Duration // negative when the server sent none
}
