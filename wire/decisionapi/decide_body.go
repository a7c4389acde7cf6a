package decisionapi

import (
	"crypto/sha256"

	"holdfast/decision"
	"holdfast/internal/strictjson"
)

// decideBody is a decoded decide body. It is used again and again: its slices keep their memory, and every short name of
// one body lives in one string, so that a body costs at most two allocations whatever it lists.
type decideBody struct {
	req      decision.Request
	names    []byte // the names of this body, one after the other
	ends     []int  // where each name ends in names
	merged   []byte // context with contextKey and features put into it
	actions  []decision.Action
	excluded []string
	// places in names, by order in ends
	actionAt, excludedAt []int
	baselineAt           int
	key                  []byte // contextKey as written, nil when absent
	features             []byte // nil when absent
}

// fields says which members a decide body may have.
type fields uint8

const (
	inputFields  fields = iota // what an upload may repeat of its input
	decideFields               // everything
)

// reset forgets the last body and keeps the memory.
func (d *decideBody) reset() {
	d.req = decision.Request{}
	d.names, d.ends, d.merged = d.names[:0], d.ends[:0], d.merged[:0]
	clear(d.actions) // they hold the last body's memory
	clear(d.excluded)
	d.actions, d.excluded = d.actions[:0], d.excluded[:0]
	d.actionAt, d.excludedAt, d.baselineAt = d.actionAt[:0], d.excludedAt[:0], -1
	d.key, d.features = nil, nil
}

// decode reads a whole body. The request refers to body and to d.
func (d *decideBody) decode(body []byte) error {
	if err := check(body); err != nil {
		return err
	}
	d.reset()
	if err := d.walk(body, decideFields); err != nil {
		return err
	}
	if d.key != nil || d.features != nil {
		d.merged = mergeContext(d.merged, d.req.Context, d.key, d.features)
		d.req.Context = d.merged
	}
	d.req.Digest = sha256.Sum256(body)
	return nil
}

// walk reads the members of a validated object.
func (d *decideBody) walk(object []byte, allowed fields) error {
	for c := members(object); c.More(); {
		if err := d.member(&c, allowed); err != nil {
			return err
		}
	}
	d.name()
	return nil
}

func (d *decideBody) member(c *strictjson.Cursor, allowed fields) (err error) {
	key := c.Key()
	switch string(key) {
	case "context":
		return d.context(c.Skip())
	case "actions":
		return d.readActions(c)
	case "excludedActions":
		return d.readExcluded(c)
	case "baselineAction":
		return d.baseline(c.Skip())
	}
	if allowed == decideFields {
		switch string(key) {
		case "eventId":
			d.req.EventID, err = someText("eventId", c.Skip())
			return err
		case "durable":
			d.req.Durable, err = boolean("durable", c.Skip())
			return err
		case "contextKey":
			d.key, err = contextKey(c.Skip())
			return err
		case "features":
			d.features, err = object("features", c.Skip())
			return err
		}
	}
	return unknownField(string(key))
}

func (d *decideBody) context(raw []byte) error {
	switch strictjson.KindOf(raw) {
	case strictjson.Object:
		d.req.Context = raw
	case strictjson.Null:
	default:
		return invalid("context must be a JSON object")
	}
	return nil
}

func (d *decideBody) readActions(c *strictjson.Cursor) error {
	some, err := list("actions", c)
	if err != nil || !some {
		return err
	}
	if d.actions == nil {
		d.actions = make([]decision.Action, 0, 8)
	}
	d.req.Actions = d.actions // not nil: an empty list is not an absent one
	for c.More() {
		if c.Kind() != strictjson.Object {
			return wrongType("actions", "an array of objects")
		}
		if err := d.readAction(c); err != nil {
			return err
		}
	}
	d.req.Actions = d.actions
	return nil
}

func (d *decideBody) readAction(c *strictjson.Cursor) error {
	at, action := -1, decision.Action{}
	c.Enter()
	for c.More() {
		var err error
		switch key := c.Key(); string(key) {
		case "id":
			at, err = d.push("id", c.Skip())
		case "features":
			action.Features, err = object("features", c.Skip())
		default:
			err = unknownField(string(key))
		}
		if err != nil {
			return err
		}
	}
	if at < 0 {
		return missing("id")
	}
	d.actions, d.actionAt = append(d.actions, action), append(d.actionAt, at)
	return nil
}

func (d *decideBody) readExcluded(c *strictjson.Cursor) error {
	some, err := list("excludedActions", c)
	if err != nil || !some {
		return err
	}
	for c.More() {
		at, err := d.push("excludedActions", c.Skip())
		if err != nil {
			return err
		}
		d.excludedAt = append(d.excludedAt, at)
	}
	return nil
}

func (d *decideBody) baseline(raw []byte) (err error) {
	if strictjson.KindOf(raw) == strictjson.Null {
		return nil
	}
	if string(raw) == `""` {
		return emptyText("baselineAction") // an absent one is written so inside
	}
	d.baselineAt, err = d.push("baselineAction", raw)
	return err
}

// push keeps a decoded name and returns its number.
func (d *decideBody) push(member string, raw []byte) (int, error) {
	if strictjson.KindOf(raw) != strictjson.String {
		return 0, wrongType(member, "a string")
	}
	d.names = strictjson.AppendText(d.names, raw)
	d.ends = append(d.ends, len(d.names))
	return len(d.ends) - 1, nil
}

// name makes one string of all names and hands out its parts.
func (d *decideBody) name() {
	if len(d.ends) == 0 {
		return
	}
	all := string(d.names)
	part := func(i int) string {
		if i == 0 {
			return all[:d.ends[0]]
		}
		return all[d.ends[i-1]:d.ends[i]]
	}
	for i, at := range d.actionAt {
		d.actions[i].ID = part(at)
	}
	for _, at := range d.excludedAt {
		d.excluded = append(d.excluded, part(at))
	}
	if len(d.excluded) > 0 {
		d.req.Excluded = d.excluded
	}
	if d.baselineAt >= 0 {
		d.req.Baseline = part(d.baselineAt)
	}
}

// contextKey returns the member's text as written, nil for null.
func contextKey(raw []byte) ([]byte, error) {
	switch strictjson.KindOf(raw) {
	case strictjson.String:
		return raw, nil
	case strictjson.Null:
		return nil, nil
	}
	return nil, wrongType("contextKey", "a string")
}

// mergeContext appends context with contextKey, when there is one, and with the members of features, which overwrite
// members of the same name.
func mergeContext(dst, context, key, features []byte) []byte {
	over := map[string]bool{}
	for c := members(features); c.More(); c.Skip() {
		over[string(c.Key())] = true
	}
	const keyName = "contextKey"
	if over[keyName] {
		key = nil
	} else if key != nil {
		over[keyName] = true
	}
	dst = append(dst, '{')
	for c := members(context); c.More(); {
		raw := c.RawKey()
		value := c.Skip()
		if !over[string(strictjson.AppendText(nil, raw))] {
			dst = appendMember(dst, raw, value)
		}
	}
	if key != nil {
		dst = appendMember(dst, []byte(`"`+keyName+`"`), key)
	}
	for c := members(features); c.More(); {
		raw := c.RawKey()
		dst = appendMember(dst, raw, c.Skip())
	}
	return append(dst, '}')
}

// members is a cursor inside the object, at the end when there is none.
func members(object []byte) strictjson.Cursor {
	c := strictjson.Walk(object)
	c.Enter()
	return c
}

func appendMember(dst, rawKey, value []byte) []byte {
	if dst[len(dst)-1] != '{' {
		dst = append(dst, ',')
	}
	dst = append(dst, rawKey...)
	dst = append(dst, ':')
	return append(dst, value...)
}
