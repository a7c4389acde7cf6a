package storetest_test

import (
	"testing"

	"holdfast/decision"
	"holdfast/store/storetest"
)

func TestDecisionMemoryKeepsTheContract(t *testing.T) {
	storetest.Decisions(t, func(testing.TB) decision.Storage { return decision.NewMemory() })
}
