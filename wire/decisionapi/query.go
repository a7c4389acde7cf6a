package decisionapi

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// params is a parsed query string. Parameters that a route does not know are left alone; those it knows are read
// strictly.
type params map[string][]string

func query(r *http.Request) (params, error) {
	if r.URL.RawQuery == "" {
		return nil, nil
	}
	q, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, invalid("the query string is not well formed")
	}
	return params(q), nil
}

// one returns a parameter that may be given once.
func (q params) one(name string) (string, bool, error) {
	values := q[name]
	if len(values) > 1 {
		return "", false, invalid("`%s` is given more than once", name)
	}
	if len(values) == 0 {
		return "", false, nil
	}
	return values[0], true, nil
}

// flag returns a parameter that is true or false, false when absent.
func (q params) flag(name string) (bool, error) {
	v, given, err := q.one(name)
	switch {
	case err != nil || !given:
		return false, err
	case v == "true":
		return true, nil
	case v == "false":
		return false, nil
	}
	return false, invalid("`%s` must be true or false", name)
}

// word returns a parameter that is one of the words, the first when absent.
func (q params) word(name string, words ...string) (string, error) {
	v, given, err := q.one(name)
	if err != nil || !given {
		return words[0], err
	}
	for _, word := range words {
		if v == word {
			return v, nil
		}
	}
	return "", invalid("`%s` must be %s", name, strings.Join(words, " or "))
}

// integer returns a parameter that is a whole number, otherwise when absent.
func (q params) integer(name string, otherwise int64) (int64, error) {
	v, given, err := q.one(name)
	if err != nil || !given {
		return otherwise, err
	}
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil {
		return 0, invalid("`%s` must be a whole number", name)
	}
	return n, nil
}

// limit returns the parameter of that name, moved into 1..1000; 100 when absent.
func (q params) limit() (int, error) {
	n, err := q.integer("limit", 100)
	return int(min(max(n, 1), 1000)), err
}
