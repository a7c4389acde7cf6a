package decision

import (
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"holdfast/fault"
	"holdfast/internal/strictjson"
)

// Aggregation says which rewards of a decision count.
type Aggregation uint8

// The aggregations.
const (
	First Aggregation = iota // the first reward wins
	Sum                      // every reward counts
)

// String is the aggregation's name on the wire.
func (a Aggregation) String() string { return aggregationNames[a] }

// The names of the spec's variants, by value.
var (
	aggregationNames = [...]string{"first", "sum"}
	explorationNames = [...]string{"squarecb", "epsilonGreedy"}
	importanceNames  = [...]string{"none", "mtr"}
)

// Spec is a capsule's configuration, checked. It is immutable.
type Spec struct {
	Actions         []Action
	Lo, Hi          float64       // reward.range, in raw units
	Default         *float64      // reward.default, nil when absent
	Wait            time.Duration // reward.waitSeconds
	Exploration     Exploration
	Learner         LearnerSpec
	Mode            Mode
	BaselineEpsilon float64
	Seed            *uint64 // nil: OS randomness
	SnapshotEvery   uint64
	Rewards         Aggregation
	Retention       RetentionSpec
	Text            []byte // the full JSON text, defaults filled in, numbers as they were written
}

// LearnerSpec configures the model.
type LearnerSpec struct {
	Bits       int
	Rate       float64
	Importance bool    // weigh an update by the inverse of its probability
	MaxWeight  float64 // the bound of that weight
}

// Weight is the importance weight of a reward whose action was drawn with the given probability.
func (l LearnerSpec) Weight(probability float64) float64 {
	if !l.Importance {
		return 1
	}
	return min(1/probability, l.MaxWeight)
}

// RetentionSpec bounds the log; zero values keep everything.
type RetentionSpec struct {
	Days     int   // 1 .. 36500
	MaxBytes int64 // of log payload, 1 MiB .. 2^50
}

// aggregation is the name of the spec's reward aggregation.
func (s *Spec) aggregation() string { return s.Rewards.String() }

// Defaults is the spec of a new capsule.
func Defaults() []byte {
	return []byte(`{"actions":[],"reward":{"range":[0,1],"waitSeconds":600},` +
		`"exploration":{"kind":"squarecb","gammaScale":10,"gammaExponent":0.5,"epsilon":0.05,"floor":0.05},` +
		`"learner":{"bits":18,"learningRate":0.5,"importance":"none","maxImportanceWeight":100},` +
		`"mode":"learner","baselineEpsilon":0.1,"snapshotEvery":1000,"rewards":"first"}`)
}

// wireSpec is the spec's JSON form.
type wireSpec struct {
	Actions []struct {
		ID       string         `json:"id"`
		Features jsontext.Value `json:"features"`
	} `json:"actions"`
	Reward struct {
		Range       [2]float64 `json:"range"`
		Default     *float64   `json:"default"`
		WaitSeconds int64      `json:"waitSeconds"`
	} `json:"reward"`
	Exploration struct {
		Kind          string  `json:"kind"`
		GammaScale    float64 `json:"gammaScale"`
		GammaExponent float64 `json:"gammaExponent"`
		Epsilon       float64 `json:"epsilon"`
		Floor         float64 `json:"floor"`
	} `json:"exploration"`
	Learner struct {
		Bits         int64   `json:"bits"`
		LearningRate float64 `json:"learningRate"`
		Importance   string  `json:"importance"`
		MaxWeight    float64 `json:"maxImportanceWeight"`
	} `json:"learner"`
	Mode            string  `json:"mode"`
	BaselineEpsilon float64 `json:"baselineEpsilon"`
	Seed            *uint64 `json:"seed"`
	SnapshotEvery   uint64  `json:"snapshotEvery"`
	Rewards         string  `json:"rewards"`
	Retention       *struct {
		Days     *int64 `json:"days"`
		MaxBytes *int64 `json:"maxBytes"`
	} `json:"retention"`
}

// ParseSpec fills in the defaults, also where the text says null, and checks every bound. Its errors are Invalid faults that start with "invalid spec: ".
func ParseSpec(text []byte) (*Spec, error) {
	full, err := MergePatch([]byte("{}"), text) // drops nulls, which would take defaults away
	if err == nil {
		full, err = MergePatch(Defaults(), full)
	}
	if err != nil {
		f, _ := errors.AsType[*fault.Error](err)
		return nil, invalidSpec("%s", f.Msg)
	}
	var w wireSpec
	if err := json.Unmarshal(full, &w, json.RejectUnknownMembers(true)); err != nil {
		return nil, invalidSpec("%s", specProblem(err))
	}
	if strings.Contains(string(memberOf(memberOf(full, "reward"), "range")), "null") {
		return nil, invalidSpec("reward.range has the wrong type") // the decoder reads null as 0
	}
	s := &Spec{
		Lo: w.Reward.Range[0], Hi: w.Reward.Range[1], Default: w.Reward.Default,
		Wait: time.Duration(w.Reward.WaitSeconds) * time.Second,
		Exploration: Exploration{GammaScale: w.Exploration.GammaScale, GammaExponent: w.Exploration.GammaExponent,
			Epsilon: w.Exploration.Epsilon, Floor: w.Exploration.Floor},
		Learner:         LearnerSpec{Bits: int(w.Learner.Bits), Rate: w.Learner.LearningRate, MaxWeight: w.Learner.MaxWeight},
		BaselineEpsilon: w.BaselineEpsilon, Seed: w.Seed, SnapshotEvery: w.SnapshotEvery, Text: full,
	}
	if err := s.variants(&w); err != nil {
		return nil, err
	}
	if err := w.bounds(); err != nil {
		return nil, err
	}
	return s, s.addActions(&w)
}

func invalidSpec(format string, args ...any) error {
	return fault.New("decision.ParseSpec", fault.Invalid, "invalid spec: "+format, args...)
}

// specProblem says what the decoder found, with the path of the field.
func specProblem(err error) string {
	semantic, ok := errors.AsType[*json.SemanticError](err)
	if !ok {
		return err.Error()
	}
	path := strings.ReplaceAll(strings.TrimPrefix(string(semantic.JSONPointer), "/"), "/", ".")
	if errors.Is(err, json.ErrUnknownName) {
		name := path[strings.LastIndexByte(path, '.')+1:]
		return fmt.Sprintf("unknown field `%s`", name)
	}
	return fmt.Sprintf("%s has the wrong type", path)
}

// variants resolves the fields that are names and the retention.
func (s *Spec) variants(w *wireSpec) error {
	find := func(field, name string, names []string) (int, error) {
		i := slices.Index(names, name)
		if i < 0 {
			return 0, invalidSpec("%s: unknown variant `%s`, expected one of %s", field, name, strings.Join(names, ", "))
		}
		return i, nil
	}
	kind, err := find("exploration.kind", w.Exploration.Kind, explorationNames[:])
	if err != nil {
		return err
	}
	importance, err := find("learner.importance", w.Learner.Importance, importanceNames[:])
	if err != nil {
		return err
	}
	mode, err := find("mode", w.Mode, modeNames[:Unverified])
	if err != nil {
		return err
	}
	rewards, err := find("rewards", w.Rewards, aggregationNames[:])
	if err != nil {
		return err
	}
	s.Exploration.Kind, s.Learner.Importance = ExplorationKind(kind), importance == 1
	s.Mode, s.Rewards = Mode(mode), Aggregation(rewards)
	if r := w.Retention; r != nil {
		if r.Days != nil {
			s.Retention.Days = int(*r.Days)
		}
		if r.MaxBytes != nil {
			s.Retention.MaxBytes = *r.MaxBytes
		}
	}
	return nil
}

// bounds checks every number.
func (w *wireSpec) bounds() error {
	within := func(v, lo, hi float64) bool { return v >= lo && v <= hi }
	positive := func(v, hi float64) bool { return v > 0 && v <= hi }
	r := w.Retention
	for _, c := range []struct {
		ok   bool
		text string
	}{
		{w.Reward.Range[0] < w.Reward.Range[1], "reward.range: the lower bound must come first and differ from the upper"},
		{!math.IsInf(w.Reward.Range[1]-w.Reward.Range[0], 0), "reward.range is too wide"},
		{within(float64(w.Reward.WaitSeconds), 1, 604800), "reward.waitSeconds must be 1 to 604800"},
		{within(w.Exploration.GammaScale, 0, 1e6), "exploration.gammaScale must be 0 to 1e6"},
		{within(w.Exploration.GammaExponent, 0, 1), "exploration.gammaExponent must be 0 to 1"},
		{within(w.Exploration.Epsilon, 0, 1), "exploration.epsilon must be 0 to 1"},
		{positive(w.Exploration.Floor, 1), "exploration.floor must be above 0 and at most 1"},
		{within(float64(w.Learner.Bits), MinModelBits, MaxModelBits), "learner.bits must be 10 to 24"},
		{positive(w.Learner.LearningRate, 10), "learner.learningRate must be above 0 and at most 10"},
		{within(w.Learner.MaxWeight, 1, 1e6), "learner.maxImportanceWeight must be 1 to 1e6"},
		{positive(w.BaselineEpsilon, 1), "baselineEpsilon must be above 0 and at most 1"},
		{within(float64(w.SnapshotEvery), 1, 1e9), "snapshotEvery must be 1 to 1e9"},
		{len(w.Actions) <= MaxActions, "at most 1024 actions"},
		{r == nil || r.Days == nil || within(float64(*r.Days), 1, 36500), "retention.days must be 1 to 36500"},
		{r == nil || r.MaxBytes == nil || within(float64(*r.MaxBytes), 1<<20, 1<<50), "retention.maxBytes must be 1 MiB to 2^50"},
	} {
		if !c.ok {
			return invalidSpec("%s", c.text)
		}
	}
	return nil
}

// addActions checks the declared actions and takes them over.
func (s *Spec) addActions(w *wireSpec) error {
	seen := make(map[string]bool, len(w.Actions))
	var features []Feature
	for i, a := range w.Actions {
		switch {
		case a.ID == "":
			return invalidSpec("actions[%d]: the id must not be empty", i)
		case utf8.RuneCountInString(a.ID) > MaxActionID:
			return invalidSpec("actions[%d]: the id is longer than 256 characters", i)
		case seen[a.ID]:
			return invalidSpec("actions[%d] duplicates the id `%s`", i, a.ID)
		}
		seen[a.ID] = true
		action := Action{ID: a.ID}
		if strictjson.KindOf(a.Features) != strictjson.None && strictjson.KindOf(a.Features) != strictjson.Null {
			action.Features = a.Features
		}
		var err error
		if features, err = AppendActionFeatures(features[:0], a.ID, action.Features); err != nil {
			f, _ := errors.AsType[*fault.Error](err)
			return invalidSpec("actions[%d].features: %s", i, f.Msg)
		}
		s.Actions = append(s.Actions, action)
	}
	return nil
}
