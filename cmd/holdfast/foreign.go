package main

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// foreign is configuration in the words of the gateway API's clients: sections of keys, from a file or from variables like
// DECISION_ENGINE__SECTION__KEY. What is read is taken out; what is left in the end does not apply here.
type foreign map[string]any

// foreignPrefix begins the variables; foreignDivider stands between the levels of a name.
const (
	foreignPrefix  = "DECISION_ENGINE__"
	foreignDivider = "__"
)

// foreignSections names what may stand at the top of a file, or under [gateway], without being a setting of ours.
var foreignSections = []string{
	"server", "metrics", "log", "limit", "database", "pg_database", "redis", "cache", "cache_config", "mem_cache", "tenant_secrets",
	"routing_config", "pm_filters", "debit_routing_config", "user_auth", "admin_secret", "api_key_auth_enabled", "analytics", "gsm",
	"hypersense", "sr_auto_calibration", "cost_ingestion", "email",
}

// isForeign reports whether a key of the file, by its path, belongs to such a section.
func isForeign(key []string) bool {
	if len(key) > 1 && key[0] == "gateway" {
		key = key[1:]
	}
	return len(key) > 0 && slices.Contains(foreignSections, key[0])
}

// adopt takes over the sections of a parsed file: those at the top, then those under [gateway], which win.
func (f foreign) adopt(file map[string]any) {
	own, _ := file["gateway"].(map[string]any)
	for _, level := range []map[string]any{file, own} {
		for _, name := range foreignSections {
			value, there := level[name]
			if _, ours := value.(string); there && !(ours && name == "database") {
				f.merge(name, value)
			}
		}
	}
}

// merge puts a value, or every key of a table, under name.
func (f foreign) merge(name string, value any) {
	from, table := value.(map[string]any)
	into, there := f[name].(map[string]any)
	if !table || !there {
		if table {
			value = maps.Clone(from)
		}
		f[name] = value
		return
	}
	for key, inner := range from {
		foreign(into).merge(key, inner)
	}
}

// environment is what the process was started with, by name.
type environment map[string]string

func environmentOf(pairs []string) environment {
	e := make(environment, len(pairs))
	for _, pair := range pairs {
		name, value, _ := strings.Cut(pair, "=")
		e[name] = value
	}
	return e
}

// adoptVariables takes over the variables, which win over what is there.
func (f foreign) adoptVariables(e environment) {
	for _, name := range slices.Sorted(maps.Keys(e)) {
		rest, ours := strings.CutPrefix(name, foreignPrefix)
		if !ours || rest == "" {
			continue
		}
		path := strings.Split(strings.ToLower(rest), foreignDivider)
		var value any = e[name]
		for i := len(path) - 1; i > 0; i-- {
			value = map[string]any{path[i]: value}
		}
		f.merge(path[0], value)
	}
}

// take returns the value at a path like "log.console.level" and removes it.
func (f foreign) take(path string) (any, bool) {
	first, rest, deeper := strings.Cut(path, ".")
	value, there := f[first]
	if !deeper {
		delete(f, first)
		return value, there
	}
	if table, ok := value.(map[string]any); ok {
		return foreign(table).take(rest)
	}
	return nil, false
}

// table takes a whole section; nil when there is none.
func (f foreign) table(path string) (map[string]any, error) {
	value, there := f.take(path)
	if !there {
		return nil, nil
	}
	if table, ok := value.(map[string]any); ok {
		return table, nil
	}
	return nil, fmt.Errorf("%s: it must be a section of keys", path)
}

// text takes a text; a number counts as its digits.
func (f foreign) text(path string) (text string, given bool, err error) {
	value, given := f.take(path)
	switch v := value.(type) {
	case string:
		return v, given, nil
	case int64, float64, bool:
		return fmt.Sprint(v), given, nil
	case nil:
		return "", false, nil
	}
	return "", given, fmt.Errorf("%s: it must be a text", path)
}

// whole takes a whole number that is not negative, written as one or as text.
func (f foreign) whole(path string) (n int, given bool, err error) {
	text, given, err := f.text(path)
	if err != nil || !given {
		return 0, given, err
	}
	if n, err = strconv.Atoi(text); err != nil || n < 0 {
		return 0, true, fmt.Errorf("%s: %q is not a whole number", path, text)
	}
	return n, true, nil
}

// truth takes true or false, written as one or as text.
func (f foreign) truth(path string) (yes, given bool, err error) {
	text, given, err := f.text(path)
	if err != nil || !given {
		return false, given, err
	}
	if yes, err = strconv.ParseBool(text); err != nil {
		return false, true, fmt.Errorf("%s: %q is neither true nor false", path, text)
	}
	return yes, true, nil
}

// list takes a list of texts, or one text with commas between them.
func (f foreign) list(path string) (list []string, err error) {
	value, _ := f.take(path)
	switch v := value.(type) {
	case nil:
	case string:
		for part := range strings.SplitSeq(v, ",") {
			if part = strings.TrimSpace(part); part != "" {
				list = append(list, part)
			}
		}
	case []any:
		for _, one := range v {
			text, ok := one.(string)
			if !ok {
				return nil, fmt.Errorf("%s: it must be a list of texts", path)
			}
			list = append(list, text)
		}
	default:
		return nil, fmt.Errorf("%s: it must be a list of texts", path)
	}
	return list, nil
}

// left names what nobody took, sorted.
func (f foreign) left() (names []string) {
	for name, value := range f {
		table, ok := value.(map[string]any)
		if !ok {
			names = append(names, name)
			continue
		}
		for _, inner := range foreign(table).left() {
			names = append(names, name+"."+inner)
		}
	}
	slices.Sort(names)
	return names
}
