package main

import (
	"bytes"
	"context"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"holdfast/decision"
	"holdfast/lab"
	"holdfast/store"
	"holdfast/store/decisions"
)

// TestTwentyKillsUnderLoad kills a real server with SIGKILL 20 times while clients decide and reward over HTTP: nothing that
// was acknowledged is missing, nothing is there twice.
func TestTwentyKillsUnderLoad(t *testing.T) {
	out, err := os.Create(filepath.Join(t.TempDir(), "report"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	o := lab.Options{
		Executable: program(t), Out: out, Command: "holdfast lab crash",
		Serve: func(data, addr string) []string {
			return []string{"serve", "--data", data, "--addr", addr, "--drain-delay", "0"}
		},
		Env: append(os.Environ(), "SYNTRA_RATE_LIMIT_RPS=1000000", "SYNTRA_RATE_LIMIT_BURST=1000000"),
	}
	if err := lab.Crash(t.Context(), o, lab.CrashOptions{Cycles: 20, Load: 300 * time.Millisecond, Seed: 1}); err != nil {
		text, _ := os.ReadFile(out.Name())
		t.Fatalf("%v\n%s", err, text)
	}
}

// The capsule of the kills. It saves its model often, so that most restarts replay a few rewards onto a snapshot.
const (
	killedBits = 12
	killedRate = 0.5
	killedSpec = `{"actions":[{"id":"a"},{"id":"b","features":{"cost":2}}],"snapshotEvery":100,"learner":{"bits":12}}`
)

// accepted is what callers were told.
type accepted struct {
	mu      sync.Mutex // guards what follows
	kept    []string   // decisions that were acknowledged as durable, or were rewarded
	rewards map[string]int
	number  int
}

func (h *accepted) next() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.number++
	return fmt.Sprintf("event-%d", h.number)
}

// load decides and rewards from several goroutines until the server gives no more answers.
func (h *accepted) load(s *served, seed uint64) {
	var all sync.WaitGroup
	for worker := range uint64(6) {
		all.Go(func() {
			random := rand.New(rand.NewPCG(seed, worker))
			for h.round(s, random) {
			}
		})
	}
	all.Wait()
}

// round is one decision, waited for or not, with an id of its own or not, and most often its reward. It reports whether the
// server still answers.
func (h *accepted) round(s *served, random *rand.Rand) bool {
	durable, event := random.IntN(2) == 0, ""
	if random.IntN(3) > 0 {
		event = fmt.Sprintf(`"eventId":%q,`, h.next())
	}
	body := fmt.Sprintf(`{%s"durable":%v,"context":{"plan":%q,"load":%d}}`, event, durable, []string{"free", "pro"}[random.IntN(2)], random.IntN(9))
	status, text := s.call(http.MethodPost, "/decide", body)
	var d struct {
		ID string `json:"decisionId"`
	}
	if status != http.StatusOK || json.Unmarshal(text, &d) != nil {
		return false
	}
	if durable {
		h.note(d.ID, 0)
	}
	if random.IntN(4) == 0 {
		return true
	}
	for range 1 + random.IntN(2) { // the second time it is a duplicate
		body := fmt.Sprintf(`{"decisionId":%q,"reward":%v}`, d.ID, float64(random.IntN(101))/100)
		if status, _ := s.call(http.MethodPost, "/reward", body); status != http.StatusOK {
			return false
		}
		h.note(d.ID, 1)
	}
	return true
}

func (h *accepted) note(id string, rewards int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.kept = append(h.kept, id)
	if rewards > 0 {
		h.rewards[id] = rewards
	}
}

// logged is a decision as the log tells of it.
type logged struct {
	ID      string         `json:"decisionId"`
	Context jsontext.Value `json:"context"`
	Actions []loggedAction `json:"actions"`
	Chosen  string         `json:"action"`
	Rewards []loggedReward `json:"rewards"`
	Rest    jsontext.Value `json:",unknown"`
}

type loggedAction struct {
	ID       string         `json:"id"`
	Features jsontext.Value `json:"features"`
}

type loggedReward struct {
	Seq        int64          `json:"seq"`
	Normalized float64        `json:"rewardNormalized"`
	Rest       jsontext.Value `json:",unknown"`
}

// replayed is a model that learns from nothing but the log.
type replayed struct {
	testing.TB
	model *decision.Model
	last  int64           // sequence number of the newest reward it has learned from
	seen  map[string]bool // decisions looked up before
}

// learn looks every new decision up, checks what callers were told of it, and learns from the rewards in their order.
func (r *replayed) learn(s *served, ids []string, h *accepted) {
	r.Helper()
	type lesson struct {
		loggedReward
		terms []decision.Term
	}
	var lessons []lesson
	for _, id := range ids {
		if r.seen[id] {
			continue
		}
		r.seen[id] = true
		var d logged
		if err := json.Unmarshal(s.must(http.StatusOK, http.MethodGet, "/decisions/"+id, ""), &d); err != nil {
			r.Fatal(err)
		}
		if len(d.Rewards) < h.rewards[id] || len(d.Rewards) > 1 {
			r.Errorf("%s has %d rewards, %d acknowledged", id, len(d.Rewards), h.rewards[id])
		}
		for _, w := range d.Rewards {
			lessons = append(lessons, lesson{w, r.terms(&d)})
		}
	}
	slices.SortFunc(lessons, func(a, b lesson) int { return int(a.Seq - b.Seq) })
	for _, l := range lessons {
		if l.Seq != r.last+1 {
			r.Errorf("reward %d comes after %d", l.Seq, r.last)
		}
		r.last = l.Seq
		r.model.Update(l.terms, l.Normalized, 1, killedRate)
	}
}

func (r *replayed) terms(d *logged) []decision.Term {
	r.Helper()
	context, err := decision.AppendFeatures(nil, decision.ContextNamespace, d.Context)
	if err != nil {
		r.Fatal(err)
	}
	for _, a := range d.Actions {
		if a.ID != d.Chosen {
			continue
		}
		action, err := decision.AppendActionFeatures(nil, a.ID, a.Features)
		if err != nil {
			r.Fatal(err)
		}
		return decision.Input{Context: context, Action: action}.AppendTerms(nil, killedBits)
	}
	r.Fatalf("%s has chosen %q, which it does not list", d.ID, d.Chosen)
	return nil
}

func (r *replayed) snapshot() []byte { return r.model.AppendSnapshot(nil, killedRate) }

// listed returns the ids of the whole log, which must have none twice.
func (s *served) listed() []string {
	s.Helper()
	var ids []string
	for after := ""; ; {
		var page struct {
			Decisions []struct {
				ID   string         `json:"decisionId"`
				Rest jsontext.Value `json:",unknown"`
			} `json:"decisions"`
			Next *string `json:"next"`
		}
		if err := json.Unmarshal(s.must(http.StatusOK, http.MethodGet, "/decisions?limit=1000"+after, ""), &page); err != nil {
			s.Fatal(err)
		}
		for _, d := range page.Decisions {
			ids = append(ids, d.ID)
		}
		if page.Next == nil {
			break
		}
		after = "&after=" + *page.Next
	}
	sorted := slices.Sorted(slices.Values(ids))
	if n := len(slices.Compact(sorted)); n != len(ids) {
		s.Errorf("%d of %d ids are in the log more than once", len(ids)-n, len(ids))
	}
	return ids
}

// audit holds a restarted server to what callers were told, to its own counters, and its model to the replayed one.
func (s *served) audit(h *accepted, r *replayed) {
	s.Helper()
	ids := s.listed()
	r.learn(s, ids, h)
	for _, id := range h.kept {
		if !r.seen[id] {
			s.Errorf("%s was acknowledged and is lost", id)
		}
	}
	h.kept = h.kept[:0]
	var info struct {
		Version uint64         `json:"modelVersion"`
		Stats   map[string]int `json:"stats"`
		Rest    jsontext.Value `json:",unknown"`
	}
	if err := json.Unmarshal(s.must(http.StatusOK, http.MethodGet, "", ""), &info); err != nil {
		s.Fatal(err)
	}
	if info.Stats["decisions"] != len(ids) || info.Stats["rewards"] != int(r.last) || info.Version != r.model.Updates() {
		s.Errorf("it counts %v at version %d; the log has %d decisions and %d rewards", info.Stats, info.Version, len(ids), r.last)
	}
	s.comparePublished(r)
}

// comparePublished waits until the model in force is published, once a second at most, and compares it byte for byte.
func (s *served) comparePublished(r *replayed) {
	s.Helper()
	var published struct {
		Version  uint64         `json:"modelVersion"`
		Snapshot []byte         `json:"snapshot"`
		Rest     jsontext.Value `json:",unknown"`
	}
	s.eventually("the model is not published", func() bool {
		if err := json.Unmarshal(s.must(http.StatusOK, http.MethodGet, "/model?snapshot=true", ""), &published); err != nil {
			s.Fatal(err)
		}
		return published.Version >= r.model.Updates()
	})
	if !bytes.Equal(published.Snapshot, r.snapshot()) {
		s.Errorf("version %d in force and version %d replayed from the log differ", published.Version, r.model.Updates())
	}
}

// TestModelAfterKillsEqualsReplay kills a real server 20 times under load. After each restart everything acknowledged is
// there, once; the counters equal a recount; and the model is, byte for byte, the one that the whole log makes.
func TestModelAfterKillsEqualsReplay(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	s := startServer(t, data)
	s.must(http.StatusCreated, http.MethodPut, "/spec", killedSpec)
	h := &accepted{rewards: map[string]int{}}
	r := &replayed{TB: t, model: decision.NewModel(killedBits), seen: map[string]bool{}}
	random := rand.New(rand.NewPCG(20, 1))
	for cycle := range uint64(20) {
		kill := time.AfterFunc(30*time.Millisecond+time.Duration(random.Int64N(int64(120*time.Millisecond))), func() { _ = s.cmd.Process.Kill() })
		h.load(s, cycle)
		kill.Stop()
		s.kill()
		doctor(t, data)
		s = startServer(t, data)
		s.audit(h, r)
		if t.Failed() {
			t.Fatalf("in cycle %d", cycle+1)
		}
	}
	if r.last < 20 {
		t.Errorf("only %d rewards in 20 cycles", r.last)
	}
	s.stop()
	doctor(t, data)
	if saved := savedModel(t, data); !bytes.Equal(saved, r.snapshot()) {
		t.Error("the model that a stop saves is not the one that the log makes")
	}
}

// doctor must find nothing in a store that nobody serves.
func doctor(t testing.TB, data string) {
	t.Helper()
	if out, err := exec.Command(program(t), "doctor", "--data", data).CombinedOutput(); err != nil {
		t.Errorf("doctor: %v\n%s", err, out)
	}
}

// savedModel is the newest snapshot on disk.
func savedModel(t testing.TB, data string) (saved []byte) {
	t.Helper()
	ctx := context.Background()
	db, err := store.Open(ctx, store.Options{Path: filepath.Join(data, decisionsFile), Migrations: decisions.Migrations()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := db.Close(ctx); err != nil {
			t.Error(err)
		}
	}()
	err = decisions.New(db).Read(ctx, func(v decision.View) error {
		row, err := v.Capsule(decision.CapsuleID{Tenant: "t", Job: "j", Capsule: "c"})
		if err != nil {
			return err
		}
		snapshot, err := v.NewestSnapshot(row.Key)
		saved = snapshot.Bytes
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return saved
}

// TestStopUnderLoadLosesNothing asks a server to end while clients are at it: it ends in order, and even decides that waited
// for no disk are there, for a stop commits the queue.
func TestStopUnderLoadLosesNothing(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	s := startServer(t, data)
	s.must(http.StatusCreated, http.MethodPut, "/spec", killedSpec)
	var mu sync.Mutex // guards acknowledged
	var acknowledged []string
	var all sync.WaitGroup
	for worker := range 8 {
		all.Go(func() {
			for i := 0; ; i++ {
				id := fmt.Sprintf("w%d-%d", worker, i)
				if status, _ := s.call(http.MethodPost, "/decide", fmt.Sprintf(`{"eventId":%q}`, id)); status != http.StatusOK {
					return
				}
				mu.Lock()
				acknowledged = append(acknowledged, id)
				mu.Unlock()
			}
		})
	}
	stop := time.AfterFunc(300*time.Millisecond, func() { _ = s.cmd.Process.Signal(syscall.SIGTERM) })
	defer stop.Stop()
	all.Wait()
	if code := s.exits(); code != 0 {
		t.Fatalf("the stop ends with %d:\n%s", code, s.log.String())
	}
	doctor(t, data)
	s = startServer(t, data)
	there := map[string]bool{}
	for _, id := range s.listed() {
		there[id] = true
	}
	for _, id := range acknowledged {
		if !there[id] {
			t.Errorf("%s was acknowledged and is lost", id)
		}
	}
	if len(acknowledged) < 100 {
		t.Errorf("only %d decides before the stop", len(acknowledged))
	}
}
