package decisionapi

import (
	"bytes"
	"crypto/sha256"
	"net/http"
	"slices"
	"strconv"

	"holdfast/decision"
	"holdfast/ident"
	"holdfast/internal/strictjson"
	"holdfast/wire/reply"
)

// rejectedJSON is one upload that was not taken.
type rejectedJSON struct {
	Index     int    `json:"index"`
	ID        string `json:"decisionId"`
	Error     string `json:"error"`
	Retryable bool   `json:"retryable"`
}

// Upload answers POST C/decisions:batch: decisions that clients made from a publication.
func (a *API) Upload(w http.ResponseWriter, r *http.Request, c *ident.Call) {
	id, err := capsuleID(c)
	var items []decision.Upload
	if err == nil {
		items, err = decodeUploads(bytes.Clone(c.Body))
	}
	var capsule *decision.Capsule
	if err == nil {
		capsule, err = a.service.Capsule(r.Context(), id)
	}
	var report decision.UploadReport
	if err == nil {
		report, err = capsule.Upload(r.Context(), items)
	}
	if err != nil {
		a.refuse(w, r, err)
		return
	}
	rejected := make([]rejectedJSON, 0, len(report.Rejected))
	for _, x := range report.Rejected {
		_, message := reply.Problem(x.Err)
		rejected = append(rejected, rejectedJSON{x.Index, x.ID, message, x.Retryable})
	}
	a.send(w, r, http.StatusOK, struct {
		Accepted   int            `json:"accepted"`
		Duplicates int            `json:"duplicates"`
		Unverified int            `json:"unverified"`
		Rejected   []rejectedJSON `json:"rejected"`
	}{report.Accepted, report.Duplicates, report.Unverified, rejected})
}

// decodeUploads reads the body of a batch. The uploads refer to it.
func decodeUploads(body []byte) (items []decision.Upload, err error) {
	var input decideBody
	err = batch(body, "decisions", func(raw []byte) error {
		u, err := decodeUpload(raw, &input)
		items = append(items, u)
		return err
	})
	return items, err
}

// uploadFields are the members that every upload must have.
var uploadFields = [...]string{"decisionId", "tsMs", "modelTag", "seed", "input", "chosenIndex", "probability", "pmf", "eligible"}

func decodeUpload(object []byte, input *decideBody) (u decision.Upload, err error) {
	seen := 0
	for c := members(object); c.More(); {
		key := string(c.Key())
		if i := slices.Index(uploadFields[:], key); i >= 0 {
			seen |= 1 << i
		}
		if err := uploadMember(&u, &c, key, input); err != nil {
			return u, err
		}
	}
	for i, name := range uploadFields {
		if seen&(1<<i) == 0 {
			return u, missing(name)
		}
	}
	return u, nil
}

func uploadMember(u *decision.Upload, c *strictjson.Cursor, key string, input *decideBody) (err error) {
	switch key {
	case "decisionId":
		u.ID, err = text(key, c.Skip())
	case "tsMs":
		u.TimeMS, err = integer(key, c.Skip())
	case "modelTag":
		u.Tag, err = text(key, c.Skip())
	case "modelVersion":
		if raw := c.Skip(); strictjson.KindOf(raw) != strictjson.Null {
			u.ModelVersion = new(uint64)
			*u.ModelVersion, err = unsigned(key, raw)
		}
	case "seed":
		u.Seed, err = seed(c.Skip())
	case "input":
		u.Input, err = uploadInput(c.Skip(), input)
	case "chosenIndex":
		u.ChosenIndex, err = index(key, c.Skip())
	case "chosenId":
		u.ChosenID, err = someText(key, c.Skip())
	case "probability":
		u.Probability, err = number(key, c.Skip())
	case "pmf":
		u.PMF, err = array(key, c, number)
	case "eligible":
		u.Eligible, err = array(key, c, index)
	default:
		err = unknownField(key)
	}
	return err
}

// uploadInput reads what the client decided on. The request owns its lists: the decoder is used for the next item.
func uploadInput(raw []byte, d *decideBody) (decision.Request, error) {
	if strictjson.KindOf(raw) != strictjson.Object {
		return decision.Request{}, wrongType("input", "a JSON object")
	}
	d.reset()
	if err := d.walk(raw, inputFields); err != nil {
		return decision.Request{}, err
	}
	req := d.req
	req.Actions, req.Excluded = slices.Clone(req.Actions), slices.Clone(req.Excluded)
	req.Digest = sha256.Sum256(raw)
	return req, nil
}

// seed is an unsigned 64-bit number, written as one or as a string: not every client can write the large ones.
func seed(raw []byte) (uint64, error) {
	if plain, ok := strictjson.Plain(raw); ok {
		raw = plain
	}
	return unsigned("seed", raw)
}

func unsigned(name string, raw []byte) (uint64, error) {
	if v, ok := strictjson.Uint(raw); ok {
		return v, nil
	}
	return 0, wrongType(name, "a whole number from 0 to 18446744073709551615")
}

func integer(name string, raw []byte) (int64, error) {
	v, err := strconv.ParseInt(string(raw), 10, 64)
	if err != nil || raw[0] == '+' {
		return 0, wrongType(name, "a whole number")
	}
	return v, nil
}

// index is a place in a list of actions.
func index(name string, raw []byte) (int, error) {
	if v, ok := strictjson.Uint(raw); ok && v < 1<<31 {
		return int(v), nil
	}
	return 0, wrongType(name, "the index of an action")
}

// array reads an array of one kind of value.
func array[T any](name string, c *strictjson.Cursor, read func(string, []byte) (T, error)) ([]T, error) {
	if c.Kind() != strictjson.Array {
		return nil, wrongType(name, "an array")
	}
	c.Enter()
	var all []T
	for c.More() {
		v, err := read(name, c.Skip())
		if err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, nil
}
