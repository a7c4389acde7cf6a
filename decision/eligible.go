package decision

import (
	"cmp"
	"slices"
	"unicode/utf8"
)

// eligibility of one action while the sets are joined.
type eligibility uint8

const (
	only     eligibility = 1 << iota // published under only
	excluded                         // by the request or the graph
)

// requestActions checks the actions of a request and hashes their features.
func (x *scratch) requestActions(actions []Action) error {
	if len(actions) > MaxActions {
		return invalid("at most %d actions", MaxActions)
	}
	x.action, x.ends = x.action[:0], x.ends[:0]
	for i := range actions {
		id := actions[i].ID
		switch {
		case id == "":
			return invalid("actions[%d]: the id must not be empty", i)
		case len(id) > MaxActionID && utf8.RuneCountInString(id) > MaxActionID:
			return invalid("actions[%d]: the id is longer than %d characters", i, MaxActionID)
		}
		var err error
		if x.action, err = AppendActionFeatures(x.action, id, actions[i].Features); err != nil {
			return err
		}
		x.ends = append(x.ends, len(x.action))
	}
	if twin := duplicate(actions); twin != "" {
		return invalid("actions duplicates the id %q", twin)
	}
	x.sets = x.sets[:0]
	from := 0
	for _, end := range x.ends {
		x.sets = append(x.sets, x.action[from:end])
		from = end
	}
	return nil
}

// fewActions is how many actions are searched one by one rather than through a map.
const fewActions = 32

// duplicate returns an id that two actions have, empty when there is none.
func duplicate(actions []Action) string {
	if len(actions) <= fewActions {
		for i := range actions {
			for j := range i {
				if actions[i].ID == actions[j].ID {
					return actions[i].ID
				}
			}
		}
		return ""
	}
	seen := make(map[string]bool, len(actions))
	for i := range actions {
		if seen[actions[i].ID] {
			return actions[i].ID
		}
		seen[actions[i].ID] = true
	}
	return ""
}

// finder looks up actions by id.
type finder struct {
	actions []Action
	index   map[string]int // nil: search one by one
}

func (e *engine) finder(d *draft) finder {
	if !d.own {
		return finder{index: e.index}
	}
	f := finder{actions: d.actions}
	if len(d.actions) > fewActions {
		f.index = make(map[string]int, len(d.actions))
		for i := range d.actions {
			f.index[d.actions[i].ID] = i
		}
	}
	return f
}

func (f finder) find(id string) (int, error) {
	if f.index != nil {
		if i, ok := f.index[id]; ok {
			return i, nil
		}
	}
	for i := range f.actions {
		if f.actions[i].ID == id {
			return i, nil
		}
	}
	return 0, invalid("unknown action %q", id)
}

// restrict fills d.eligible and moves x.sets together accordingly. It returns the baseline's place in d.eligible, -1
// without one.
func (e *engine) restrict(x *scratch, req *Request, r *run) (baseline int, err error) {
	d := &x.draft
	d.eligible = d.eligible[:0]
	place := -1
	if len(req.Excluded) == 0 && req.Baseline == "" && r == nil {
		for i := range d.actions {
			d.eligible = append(d.eligible, i)
		}
	} else if place, err = e.join(x, req, r); err != nil {
		return 0, err
	}
	x.eligible = d.eligible
	switch {
	case len(d.eligible) == 0:
		return 0, invalid("no eligible actions: every action is excluded")
	case e.spec.Mode != BaselineExplore:
		return -1, nil
	case req.Baseline == "":
		return 0, invalid("baselineAction is required in the mode baselineExplore")
	case place < 0:
		return 0, invalid("the baselineAction %q is not eligible", req.Baseline)
	}
	return place, nil
}

// join fills d.eligible from the request's sets and the graph's, and returns the baseline's place in it.
func (e *engine) join(x *scratch, req *Request, r *run) (place int, err error) {
	d, names := &x.draft, e.finder(&x.draft)
	x.state = slices.Grow(x.state[:0], len(d.actions))[:len(d.actions)]
	clear(x.state)
	if err := x.mark(names, req.Excluded, excluded); err != nil {
		return 0, err
	}
	restricted, baseline := false, -1
	if r != nil {
		if err := cmp.Or(x.mark(names, r.result.Exclude, excluded), x.mark(names, r.result.Only, only)); err != nil {
			return 0, err
		}
		restricted = r.result.restricted
	}
	if req.Baseline != "" {
		if baseline, err = names.find(req.Baseline); err != nil {
			return 0, err
		}
	}
	place = -1
	for i, state := range x.state {
		if state&excluded != 0 || restricted && state&only == 0 {
			continue
		}
		if i == baseline {
			place = len(d.eligible)
		}
		x.sets[len(d.eligible)] = x.sets[i]
		d.eligible = append(d.eligible, i)
	}
	x.sets = x.sets[:len(d.eligible)]
	return place, nil
}

func (x *scratch) mark(names finder, ids []string, as eligibility) error {
	for _, id := range ids {
		i, err := names.find(id)
		if err != nil {
			return err
		}
		x.state[i] |= as
	}
	return nil
}
