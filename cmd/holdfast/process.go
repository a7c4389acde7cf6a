package main

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// listenerOf returns the process of this user that listens on a TCP port of this machine, 0 when none is found. It reads
// /proc, so that a server can be stopped by its port alone.
func listenerOf(port int) int {
	sockets := map[string]bool{}
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		for _, inode := range listening(table, port) {
			sockets["socket:["+inode+"]"] = true
		}
	}
	if len(sockets) == 0 {
		return 0
	}
	links, _ := filepath.Glob("/proc/[0-9]*/fd/*") // the pattern is well formed
	for _, link := range links {
		if to, err := os.Readlink(link); err == nil && sockets[to] {
			pid, _ := strconv.Atoi(strings.Split(link, "/")[2]) // digits by the pattern
			return pid
		}
	}
	return 0
}

// listening returns the inodes of the sockets of a /proc/net table that listen on a port.
func listening(table string, port int) (inodes []string) {
	f, err := os.Open(table)
	if err != nil {
		return nil // not this system, or no IPv6
	}
	defer f.Close()
	const stateListen, localAddress, state, inode = "0A", 1, 3, 9
	suffix := fmt.Sprintf(":%04X", port)
	for scan := bufio.NewScanner(f); scan.Scan(); {
		field := strings.Fields(scan.Text())
		if len(field) > inode && field[state] == stateListen && strings.HasSuffix(field[localAddress], suffix) {
			inodes = append(inodes, field[inode])
		}
	}
	return inodes
}
