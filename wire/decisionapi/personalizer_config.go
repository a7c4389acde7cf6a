package decisionapi

import (
	"encoding/json/jsontext"
	"encoding/json/v2"
	"net/http"
	"strconv"
	"strings"
	"time"

	"holdfast/decision"
	"holdfast/fault"
	"holdfast/ident"
)

// The parts of a service configuration that are the same for every capsule.
const (
	exportFrequency = "PT1S"
	forEver         = -1
)

// serviceConfig is a capsule's spec in that API's words.
type serviceConfig struct {
	RewardWaitTime        string  `json:"rewardWaitTime"`
	DefaultReward         float64 `json:"defaultReward"`
	RewardAggregation     string  `json:"rewardAggregation"`
	ExplorationPercentage float64 `json:"explorationPercentage"`
	LearningMode          string  `json:"learningMode"`
	ModelExportFrequency  string  `json:"modelExportFrequency"`
	LogRetentionDays      int     `json:"logRetentionDays"`
}

// Configuration answers GET …/configurations/service.
func (a *API) Configuration(w http.ResponseWriter, r *http.Request, c *ident.Call) {
	capsule, err := a.capsule(r, c)
	if err != nil {
		a.decline(w, r, err)
		return
	}
	a.sendConfig(w, r, capsule.Spec())
}

func (a *API) sendConfig(w http.ResponseWriter, r *http.Request, text []byte) {
	spec, err := decision.ParseSpec(text)
	if err != nil {
		a.decline(w, r, err)
		return
	}
	a.send(w, r, http.StatusOK, showConfig(spec))
}

func showConfig(s *decision.Spec) serviceConfig {
	shown := serviceConfig{
		RewardWaitTime: formatSeconds(int64(s.Wait / time.Second)), RewardAggregation: "earliest", ExplorationPercentage: s.Exploration.Floor,
		LearningMode: "Online", ModelExportFrequency: exportFrequency, LogRetentionDays: forEver,
	}
	if s.Default != nil {
		shown.DefaultReward = *s.Default
	}
	if s.Rewards == decision.Sum {
		shown.RewardAggregation = "sum"
	}
	if s.Exploration.Kind == decision.EpsilonGreedy {
		shown.ExplorationPercentage = s.Exploration.Epsilon
	}
	switch s.Mode {
	case decision.BaselineExplore:
		shown.LearningMode = "Apprentice"
	case decision.Frozen:
		shown.LearningMode = "Frozen"
	}
	return shown
}

// configBody is a configuration as clients send it back: the whole of it, changed. The members that follow the first block
// have no meaning here and are read so that an unmodified client can write what it has read elsewhere.
type configBody struct {
	RewardWaitTime        *string  `json:"rewardWaitTime"`
	DefaultReward         *float64 `json:"defaultReward"`
	RewardAggregation     *string  `json:"rewardAggregation"`
	ExplorationPercentage *float64 `json:"explorationPercentage"`
	LearningMode          *string  `json:"learningMode"`

	ModelExportFrequency      jsontext.Value `json:"modelExportFrequency"`
	LogRetentionDays          jsontext.Value `json:"logRetentionDays"`
	LogMirrorEnabled          *bool          `json:"logMirrorEnabled"`
	LogMirrorSASURI           jsontext.Value `json:"logMirrorSasUri"`
	LastConfigurationEditDate jsontext.Value `json:"lastConfigurationEditDate"`
	AutoOptimization          *bool          `json:"isAutoOptimizationEnabled"`
	AutoOptimizationFrequency jsontext.Value `json:"autoOptimizationFrequency"`
	AutoOptimizationStartDate jsontext.Value `json:"autoOptimizationStartDate"`
	LatestServiceVersion      jsontext.Value `json:"latestServiceVersion"`
}

// PutConfiguration answers PUT …/configurations/service: the same change as a patch of the spec.
func (a *API) PutConfiguration(w http.ResponseWriter, r *http.Request, c *ident.Call) {
	spec, err := a.putConfiguration(r, c)
	if err != nil {
		a.decline(w, r, err)
		return
	}
	a.sendConfig(w, r, spec)
}

func (a *API) putConfiguration(r *http.Request, c *ident.Call) ([]byte, error) {
	id, err := capsuleID(c)
	if err != nil {
		return nil, err
	}
	if c.Principal.Scope.Role == ident.Reader { // a path without a capsule cannot ask for more than a read token
		return nil, fault.New("decisionapi.PutConfiguration", fault.Forbidden, "")
	}
	var body configBody
	if err := decode(c.Body, &body); err != nil {
		return nil, err
	}
	patch, err := body.patch()
	if err != nil {
		return nil, err
	}
	if _, err := a.service.Capsule(r.Context(), id); err != nil {
		return nil, err // a configuration changes a capsule and makes none
	}
	spec, _, err := a.service.PutSpec(r.Context(), id, patch, decision.Merge)
	return spec, err
}

// patch is the configuration as a merge patch of the spec.
func (b *configBody) patch() ([]byte, error) {
	patch := map[string]any{}
	reward := map[string]any{}
	if b.RewardWaitTime != nil {
		wait, ok := parseDuration(*b.RewardWaitTime)
		if !ok {
			return nil, invalid("`rewardWaitTime` must be an ISO 8601 duration of whole seconds, such as PT10M")
		}
		reward["waitSeconds"] = wait
	}
	if b.DefaultReward != nil {
		reward["default"] = *b.DefaultReward
	}
	if len(reward) > 0 {
		patch["reward"] = reward
	}
	if b.ExplorationPercentage != nil {
		patch["exploration"] = map[string]any{"kind": "epsilonGreedy", "epsilon": *b.ExplorationPercentage}
	}
	if b.LogMirrorEnabled != nil && *b.LogMirrorEnabled {
		return nil, invalid("`logMirrorEnabled` must be false: logs are read over this API")
	}
	if b.AutoOptimization != nil && *b.AutoOptimization {
		return nil, invalid("`isAutoOptimizationEnabled` must be false: changes go through gates")
	}
	for _, m := range []struct {
		field, name string // there and here
		value       *string
		words       map[string]string
	}{
		{"rewardAggregation", "rewards", b.RewardAggregation, map[string]string{"earliest": "first", "sum": "sum"}},
		{"learningMode", "mode", b.LearningMode, map[string]string{"Online": "learner", "Apprentice": "baselineExplore", "Frozen": "frozen"}},
	} {
		if m.value == nil {
			continue
		}
		word, known := m.words[*m.value]
		if !known {
			return nil, invalid("`%s`: unknown variant `%s`", m.field, *m.value)
		}
		patch[m.name] = word
	}
	return json.Marshal(patch)
}

// maxDigits bounds the numbers of a duration; the spec's own bound is 604800 seconds.
const maxDigits = 9

// parseDuration reads an ISO 8601 duration of days, hours, minutes and seconds, each at most once and in this order, and
// returns it in seconds.
func parseDuration(text string) (seconds int64, ok bool) {
	rest, ok := strings.CutPrefix(text, "P")
	if !ok {
		return 0, false
	}
	days, clock, timed := strings.Cut(rest, "T")
	total, okDays := sumUnits(days, "D", []int64{86400})
	more, okClock := sumUnits(clock, "HMS", []int64{3600, 60, 1})
	return total + more, okDays && okClock && (days != "" || clock != "") && timed == (clock != "")
}

// sumUnits adds up numbers that are each followed by one of the letters of units, in order. No text is no time.
func sumUnits(text, units string, sizes []int64) (total int64, ok bool) {
	for next := 0; text != ""; {
		n := strings.IndexFunc(text, func(r rune) bool { return r < '0' || r > '9' })
		if n < 1 || n > maxDigits {
			return 0, false
		}
		unit := strings.IndexByte(units[next:], text[n])
		value, err := strconv.ParseInt(text[:n], 10, 64)
		if unit < 0 || err != nil {
			return 0, false
		}
		total += value * sizes[next+unit]
		next, text = next+unit+1, text[n+1:]
	}
	return total, true
}

// formatSeconds writes a duration in the shortest such form, PT0S for none.
func formatSeconds(left int64) string {
	text := []byte{'P'}
	if days := left / 86400; days > 0 {
		text = append(strconv.AppendInt(text, days, 10), 'D')
	}
	if left %= 86400; left > 0 || len(text) == 1 {
		text = append(text, 'T')
	}
	for _, u := range []struct {
		seconds int64
		letter  byte
	}{{3600, 'H'}, {60, 'M'}, {1, 'S'}} {
		if n := left / u.seconds; n > 0 {
			text = append(strconv.AppendInt(text, n, 10), u.letter)
		}
		left %= u.seconds
	}
	if text[len(text)-1] == 'T' {
		text = append(text, "0S"...)
	}
	return string(text)
}
