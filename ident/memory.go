package ident

import (
	"context"
	"sync"
	"time"
)

// Memory is a Storage that forgets everything with the process: for tests and throwaway servers.
type Memory struct {
	mu   sync.Mutex // guards rows
	rows map[string]Row
}

var _ Storage = (*Memory)(nil)

// Tokens returns every kept row.
func (m *Memory) Tokens(context.Context) ([]Row, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	rows := make([]Row, 0, len(m.rows))
	for _, row := range m.rows {
		rows = append(rows, row)
	}
	return rows, nil
}

// SaveToken keeps a row.
func (m *Memory) SaveToken(_ context.Context, row Row) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.rows == nil {
		m.rows = make(map[string]Row)
	}
	m.rows[row.Hash] = row
	return nil
}

// DropToken removes the row of that hash and reports whether there was one.
func (m *Memory) DropToken(_ context.Context, hash string) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, found := m.rows[hash]
	delete(m.rows, hash)
	return found, nil
}

// TouchToken notes when the token was last used.
func (m *Memory) TouchToken(_ context.Context, hash string, used time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if row, found := m.rows[hash]; found {
		row.LastUsedAt = used
		m.rows[hash] = row
	}
	return nil
}
