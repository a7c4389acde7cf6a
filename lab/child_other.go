//go:build !linux

package lab

import "syscall"

// dieWithParent has no equivalent here: a child outlives a lab that was killed.
func dieWithParent() *syscall.SysProcAttr { return nil }
