package decision

import (
	"bufio"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"io"
	"math"
	"slices"
	"strings"

	"holdfast/fault"
)

// MaxRowBytes bounds one line of an offline log.
const MaxRowBytes = 8 << 20

// wireRow is one line of an offline log. Metadata of a logged decision is accepted and ignored; other fields are errors.
type wireRow struct {
	ID          string           `json:"decisionId"`
	TimeMS      int64            `json:"tsMs"`
	Context     jsontext.Value   `json:"context"`
	Derived     jsontext.Value   `json:"derived"`
	Actions     []jsontext.Value `json:"actions"`
	Eligible    []jsontext.Value `json:"eligible"`
	PMF         []float64        `json:"pmf"`
	Chosen      jsontext.Value   `json:"chosen"`
	ChosenIndex *int             `json:"chosenIndex"`
	Action      *string          `json:"action"`
	Probability float64          `json:"probability"`
	Reward      *float64         `json:"reward"`
	Rewards     []jsontext.Value `json:"rewards"`
	Target      []float64        `json:"targetPmf"`
	Mode        string           `json:"mode"`

	ModelVersion  jsontext.Value `json:"modelVersion"`
	Seed          jsontext.Value `json:"seed"`
	Reason        jsontext.Value `json:"reason"`
	RequestSHA256 jsontext.Value `json:"requestSha256"`
	ProgramSHA256 jsontext.Value `json:"programSha256"`
}

// ReadRows reads an offline log, one JSON object a line; empty lines are skipped. sum adds up the rewards of a row, where the
// first counts otherwise. An error names the line.
func ReadRows(r io.Reader, aggregation Aggregation) ([]Row, error) {
	scan := bufio.NewScanner(r)
	scan.Buffer(make([]byte, 64<<10), MaxRowBytes)
	var rows []Row
	line := 0
	for scan.Scan() {
		line++
		text := scan.Bytes()
		if len(strings.TrimSpace(string(text))) == 0 {
			continue
		}
		if len(rows) == MaxEvaluationRows {
			return nil, fault.New("decision.ReadRows", fault.TooLarge, "more than %d rows", MaxEvaluationRows)
		}
		row, err := parseRow(text, aggregation)
		if err != nil {
			return nil, fault.New("decision.ReadRows", fault.Invalid, "line %d: %v", line, err)
		}
		rows = append(rows, row)
	}
	if err := scan.Err(); err != nil {
		return nil, fault.Wrap("decision.ReadRows", fault.Invalid, err, "the log cannot be read")
	}
	return rows, nil
}

// rowError is what is wrong with one line; ReadRows adds where.
type rowError string

func (e rowError) Error() string { return string(e) }

func parseRow(text []byte, aggregation Aggregation) (Row, error) {
	var w wireRow
	if err := json.Unmarshal(text, &w, json.RejectUnknownMembers(true)); err != nil {
		return Row{}, err
	}
	if !ValidDecisionID(w.ID) {
		return Row{}, rowError("decisionId is missing or not a valid id")
	}
	row := Row{ID: w.ID, TimeMS: w.TimeMS, PMF: w.PMF, Probability: w.Probability, Target: w.Target,
		Unverified: w.Mode == Unverified.String()}
	var err error
	if row.Context, err = rowObject("context", w.Context); err != nil {
		return Row{}, err
	}
	if row.Derived, err = rowObject("derived", w.Derived); err != nil {
		return Row{}, err
	}
	if row.Actions, err = rowActions(w.Actions); err != nil {
		return Row{}, err
	}
	if row.Eligible, err = rowEligible(w.Eligible, row.Actions); err != nil {
		return Row{}, err
	}
	if row.Chosen, err = w.chosen(row.Actions); err != nil {
		return Row{}, err
	}
	if err := row.addRewards(&w, aggregation); err != nil {
		return Row{}, err
	}
	return row, row.check()
}

// rowObject accepts an object, null or nothing.
func rowObject(name string, v jsontext.Value) ([]byte, error) {
	switch {
	case len(v) == 0 || v.Kind() == 'n':
		return nil, nil
	case v.Kind() != '{':
		return nil, rowError(name + " is not an object")
	}
	return v, nil
}

// rowActions accepts ids and objects with an id.
func rowActions(list []jsontext.Value) ([]Action, error) {
	if len(list) == 0 {
		return nil, rowError("actions is missing or empty")
	}
	actions := make([]Action, len(list))
	seen := make(map[string]bool, len(list))
	for i, v := range list {
		var a struct {
			ID       string         `json:"id"`
			Features jsontext.Value `json:"features"`
		}
		var err error
		if v.Kind() == '"' {
			err = json.Unmarshal(v, &a.ID)
		} else {
			err = json.Unmarshal(v, &a, json.RejectUnknownMembers(true))
		}
		if err != nil {
			return nil, err
		}
		features, err := rowObject("features of action "+a.ID, a.Features)
		if err != nil {
			return nil, err
		}
		if a.ID == "" || seen[a.ID] {
			return nil, rowError("an action id is empty or repeated")
		}
		seen[a.ID] = true
		actions[i] = Action{ID: a.ID, Features: features}
	}
	return actions, nil
}

// actionAt resolves an index or an id.
func actionAt(v jsontext.Value, actions []Action) (int, error) {
	if v.Kind() == '"' {
		var id string
		if err := json.Unmarshal(v, &id); err != nil {
			return 0, err
		}
		if i := slices.IndexFunc(actions, func(a Action) bool { return a.ID == id }); i >= 0 {
			return i, nil
		}
		return 0, rowError("unknown action " + id)
	}
	var i int
	if err := json.Unmarshal(v, &i); err != nil {
		return 0, err
	}
	if i < 0 || i >= len(actions) {
		return 0, rowError("an action index is out of range")
	}
	return i, nil
}

// rowEligible returns ascending indices; nothing means every action.
func rowEligible(list []jsontext.Value, actions []Action) ([]int, error) {
	if list == nil {
		all := make([]int, len(actions))
		for i := range all {
			all[i] = i
		}
		return all, nil
	}
	eligible := make([]int, len(list))
	for i, v := range list {
		at, err := actionAt(v, actions)
		if err != nil {
			return nil, err
		}
		if eligible[i] = at; i > 0 && at <= eligible[i-1] {
			return nil, rowError("eligible is not in action order")
		}
	}
	return eligible, nil
}

// chosen resolves the logged action; every field that names it must agree.
func (w *wireRow) chosen(actions []Action) (int, error) {
	at := -1
	agree := func(i int) bool {
		same := at < 0 || at == i
		at = i
		return same
	}
	if len(w.Chosen) > 0 && w.Chosen.Kind() != 'n' {
		i, err := actionAt(w.Chosen, actions)
		if err != nil {
			return 0, err
		}
		agree(i)
	}
	if w.ChosenIndex != nil {
		if *w.ChosenIndex < 0 || *w.ChosenIndex >= len(actions) || !agree(*w.ChosenIndex) {
			return 0, rowError("chosenIndex is out of range or contradicts chosen")
		}
	}
	if w.Action != nil {
		i := slices.IndexFunc(actions, func(a Action) bool { return a.ID == *w.Action })
		if i < 0 || !agree(i) {
			return 0, rowError("action is unknown or contradicts the chosen index")
		}
	}
	if at < 0 {
		return 0, rowError("nothing says which action was chosen")
	}
	return at, nil
}

// addRewards takes reward or rewards, whose items are numbers or logged rewards.
func (row *Row) addRewards(w *wireRow, aggregation Aggregation) error {
	values := []float64{}
	if w.Reward != nil {
		values = append(values, *w.Reward)
		if w.Rewards != nil {
			return rowError("give reward or rewards, one of them")
		}
	}
	for _, v := range w.Rewards {
		var logged struct {
			Reward *float64 `json:"reward"`
		}
		if v.Kind() == '0' {
			logged.Reward = new(float64)
			if err := json.Unmarshal(v, logged.Reward); err != nil {
				return err
			}
		} else if err := json.Unmarshal(v, &logged); err != nil {
			return err
		}
		if logged.Reward == nil {
			return rowError("an item of rewards has no reward")
		}
		values = append(values, *logged.Reward)
	}
	row.Reward, row.Rewards = aggregation.total(values)
	return nil
}

// total is what a decision earned, and from how many rewards: the first, or their sum.
func (a Aggregation) total(values []float64) (sum float64, counted int) {
	if len(values) > 1 && a == First {
		values = values[:1]
	}
	for _, v := range values {
		sum += v
	}
	return sum, len(values)
}

// check holds the probabilities to what they must be. A row without a PMF is skipped later.
func (row *Row) check() error {
	if row.PMF == nil {
		return nil
	}
	if err := checkPMF("pmf", row.PMF, len(row.Eligible)); err != nil {
		return err
	}
	at := row.at()
	if at < 0 {
		return rowError("the chosen action is not eligible")
	}
	if !(row.Probability > 0) || math.Abs(row.Probability-row.PMF[at]) > 1e-9 {
		return rowError("probability is not positive or differs from its entry of pmf")
	}
	if row.Target != nil {
		return checkPMF("targetPmf", row.Target, len(row.Eligible))
	}
	return nil
}

func checkPMF(name string, pmf []float64, entries int) error {
	if len(pmf) != entries {
		return rowError(name + " has another length than eligible")
	}
	sum := 0.0
	for _, p := range pmf {
		if !(p >= 0) {
			return rowError(name + " has a negative entry")
		}
		sum += p
	}
	if math.Abs(sum-1) > 1e-6 {
		return rowError(name + " does not sum to 1")
	}
	return nil
}
