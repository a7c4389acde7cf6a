package gateway

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"holdfast/fault"
)

// KeyType is what the values of a key of the rule language are.
type KeyType uint8

// The types of keys.
const (
	KeyInteger KeyType = iota
	KeyEnum
	KeyText
	KeyUDF // metadata of the caller's own
	KeyGlobal
)

var keyTypes = [...]string{"integer", "enum", "str_value", "udf", "global_ref"}

// String is the type's name in the configuration and on the wire.
func (t KeyType) String() string { return keyTypes[t] }

// Key is one entry of the catalogue. Limits that are nil, or a Regex that is empty, do not apply; lengths are in characters.
type Key struct {
	Name                              string
	Type                              KeyType
	Values                            []string // of an enum
	Min, Max                          *int64
	MinLength, MaxLength, ExactLength *int64
	Regex                             string

	words   map[string]struct{} // Values
	pattern *regexp.Regexp      // Regex
}

// Catalogue is the set of keys that rules and parameters may use. It is immutable.
type Catalogue struct {
	keys  []Key // by name
	index map[string]int
}

// The bounds of a configured catalogue.
const (
	maxKeys   = 1024
	maxValues = 10_000 // of one key
)

// newCatalogue indexes the keys, whose names must differ.
func newCatalogue(keys []Key) (*Catalogue, error) {
	slices.SortFunc(keys, func(a, b Key) int { return cmp.Compare(a.Name, b.Name) })
	c := &Catalogue{keys: keys, index: make(map[string]int, len(keys))}
	for i := range keys {
		k := &keys[i]
		if k.Name == "" || len(k.Name) > MaxName {
			return nil, badKey(k.Name, "a name has 1 to %d bytes", MaxName)
		}
		if _, twice := c.index[k.Name]; twice {
			return nil, badKey(k.Name, "it is there twice")
		}
		c.index[k.Name] = i
		if k.Type == KeyEnum {
			k.words = make(map[string]struct{}, len(k.Values))
			k.Values = slices.DeleteFunc(k.Values, func(word string) bool { // what is listed twice is listed once
				_, twice := k.words[word]
				k.words[word] = struct{}{}
				return twice
			})
		}
		if k.Regex != "" {
			pattern, err := regexp.Compile(k.Regex)
			if err != nil {
				return nil, badKey(k.Name, "regex: %s", err.Error())
			}
			k.pattern = pattern
		}
	}
	return c, nil
}

func badKey(name, format string, args ...any) *fault.Error {
	return invalid("Catalogue", "routing_config.keys.%s: "+format, append([]any{clip(name)}, args...)...)
}

// Keys are all keys, by name. The slice is shared: it must not be changed.
func (c *Catalogue) Keys() []Key { return c.keys }

// key returns the entry with the name, nil when there is none.
func (c *Catalogue) key(name string) *Key {
	if i, there := c.index[name]; there {
		return &c.keys[i]
	}
	return nil
}

// ParseCatalogue makes a catalogue of configuration: every key's table, with type and, where they apply, values, min_value,
// max_value, min_length, max_length, exact_length and regex. Values are one text with commas, or a list of texts. An empty
// configuration is the default catalogue. Other members are ignored. Errors are Invalid and name the key.
func ParseCatalogue(config map[string]any) (*Catalogue, error) {
	if len(config) == 0 {
		return DefaultCatalogue(), nil
	}
	if len(config) > maxKeys {
		return nil, badKey("*", "more than %d keys", maxKeys)
	}
	keys := make([]Key, 0, len(config))
	for name, entry := range config {
		table, ok := entry.(map[string]any)
		if !ok {
			return nil, badKey(name, "it must be a table such as { type = \"integer\" }")
		}
		key, err := parseKey(name, table)
		if err != nil {
			return nil, err
		}
		keys = append(keys, key)
	}
	return newCatalogue(keys)
}

func parseKey(name string, table map[string]any) (Key, error) {
	k := Key{Name: name}
	typed := false
	for member, v := range table {
		var err error
		switch member {
		case "type":
			text, _ := v.(string)
			at := slices.Index(keyTypes[:], strings.ToLower(text))
			if at < 0 {
				return k, badKey(name, "the type is none of %s", strings.Join(keyTypes[:], ", "))
			}
			k.Type, typed = KeyType(at), true
		case "values":
			k.Values, err = words(name, v)
		case "regex":
			k.Regex, _ = v.(string)
		case "min_value":
			k.Min, err = limit(name, member, v)
		case "max_value":
			k.Max, err = limit(name, member, v)
		case "min_length":
			k.MinLength, err = limit(name, member, v)
		case "max_length":
			k.MaxLength, err = limit(name, member, v)
		case "exact_length":
			k.ExactLength, err = limit(name, member, v)
		}
		if err != nil {
			return k, err
		}
	}
	if !typed {
		return k, badKey(name, "type is missing")
	}
	if k.Type == KeyEnum && len(k.Values) == 0 {
		return k, badKey(name, "an enum needs values")
	}
	return k, nil
}

// words reads the values of an enum.
func words(name string, v any) ([]string, error) {
	var parts []string
	switch list := v.(type) {
	case string:
		parts = strings.Split(list, ",")
	case []any:
		for _, one := range list {
			text, ok := one.(string)
			if !ok {
				return nil, badKey(name, "values must be texts")
			}
			parts = append(parts, text)
		}
	case []string:
		parts = list
	default:
		return nil, badKey(name, "values must be one text with commas, or a list of texts")
	}
	out := make([]string, 0, len(parts))
	for _, part := range parts {
		if part = strings.TrimSpace(part); part != "" {
			out = append(out, part)
		}
	}
	if len(out) > maxValues {
		return nil, badKey(name, "more than %d values", maxValues)
	}
	return out, nil
}

func limit(name, member string, v any) (*int64, error) {
	var n int64
	switch v := v.(type) {
	case int64:
		n = v
	case int:
		n = int64(v)
	case float64:
		n = int64(v)
		if float64(n) != v {
			return nil, badKey(name, "%s must be a whole number", member)
		}
	case string: // from the environment
		var err error
		if n, err = strconv.ParseInt(v, 10, 64); err != nil {
			return nil, badKey(name, "%s must be a whole number", member)
		}
	default:
		return nil, badKey(name, "%s must be a whole number", member)
	}
	return &n, nil
}

// checkNumber reports what is wrong with a number of this key, empty when nothing is.
func (k *Key) checkNumber(n uint64) string {
	switch {
	case k.Min != nil && *k.Min > 0 && n < uint64(*k.Min):
		return "is less than the least value of the key"
	case k.Max != nil && (*k.Max < 0 || n > uint64(*k.Max)):
		return "is more than the greatest value of the key"
	}
	return ""
}

// checkText reports what is wrong with a text of this key, empty when nothing is.
func (k *Key) checkText(text string) string {
	n := int64(utf8.RuneCountInString(text))
	switch {
	case k.ExactLength != nil && n != *k.ExactLength:
		return "does not have the length of the key"
	case k.MinLength != nil && n < *k.MinLength:
		return "is shorter than the key allows"
	case k.MaxLength != nil && n > *k.MaxLength:
		return "is longer than the key allows"
	case k.pattern != nil && !k.pattern.MatchString(text):
		return "does not match the pattern of the key"
	}
	return ""
}

// checkWord reports what is wrong with a word of this key, empty when nothing is.
func (k *Key) checkWord(word string) string {
	if _, there := k.words[word]; !there {
		return "is not one of the values of the key"
	}
	return ""
}

// List is the values of an enum as one text.
func (k *Key) List() string { return strings.Join(k.Values, ", ") }
