package gateway

import (
	"slices"
	"strings"
)

// Filters say which connectors take a payment method type from which countries, in which currencies and how captured. It is
// immutable; nil lets everything pass.
type Filters struct {
	connectors map[Name]map[string]filter // by connector, then by payment method type
}

// filter is one entry. A set that is nil lets everything pass.
type filter struct {
	countries, currencies map[string]bool
	captures              map[string]bool // that are not available
}

// filterDefault is the table of connectors that have none of their own.
const filterDefault = "default"

// filterFacts are what filters look at. What is empty was not given and passes.
type filterFacts struct{ methodType, country, currency, capture string }

// note takes what filters look at from a parameter.
func (f *filterFacts) note(v *Parameter) {
	switch v.Key {
	case "payment_method_type":
		f.methodType = v.Text
	case "billing_country":
		f.country = canonicalCountry(v.Text)
	case "currency":
		f.currency = v.Text
	case "capture_method":
		f.capture = v.Text
	}
}

// eligible drops the connectors that do not take the payment, in place. Nothing is dropped when the payment method type is
// not known.
func (f *Filters) eligible(list []Connector, facts *filterFacts) []Connector {
	if f == nil || facts.methodType == "" {
		return list
	}
	return slices.DeleteFunc(list, func(c Connector) bool { return !f.takes(c.Gateway, facts) })
}

func (f *Filters) takes(connector Name, facts *filterFacts) bool {
	table, there := f.connectors[connector]
	if !there {
		table = f.connectors[filterDefault]
	}
	entry, there := table[facts.methodType]
	if !there {
		return true
	}
	passes := func(set map[string]bool, value string) bool { return set == nil || value == "" || set[value] }
	return passes(entry.countries, facts.country) && passes(entry.currencies, facts.currency) && !entry.captures[facts.capture]
}

// ParseFilters makes filters of configuration: for every connector, or default, a table of payment method types, each with
// country (ISO alpha-2 codes or names), currency, and not_available_flows.capture_method, as one text with commas or a list.
// An empty configuration is nil. Errors are Invalid and name the place.
func ParseFilters(config map[string]any) (*Filters, error) {
	if len(config) == 0 {
		return nil, nil
	}
	f := &Filters{connectors: map[Name]map[string]filter{}}
	for connector, entry := range config {
		methods, ok := entry.(map[string]any)
		if !ok {
			return nil, badFilter(connector, "it must be a table of payment method types")
		}
		table := map[string]filter{}
		for method, entry := range methods {
			var err error
			if table[method], err = parseFilter(connector+"."+method, entry); err != nil {
				return nil, err
			}
		}
		f.connectors[Name(connector)] = table
	}
	return f, nil
}

func badFilter(place, why string) error {
	return invalid("Filters", "pm_filters.%s: %s", clip(place), why)
}

func parseFilter(place string, entry any) (f filter, err error) {
	table, ok := entry.(map[string]any)
	if !ok {
		return f, badFilter(place, "it must be a table such as { country = \"US,GB\", currency = \"USD,GBP\" }")
	}
	for member, v := range table {
		switch member {
		case "country":
			f.countries, err = filterSet(place+".country", v)
		case "currency":
			f.currencies, err = filterSet(place+".currency", v)
		case "not_available_flows":
			flows, ok := v.(map[string]any)
			if !ok {
				return f, badFilter(place+".not_available_flows", "it must be a table")
			}
			if capture, there := flows["capture_method"]; there {
				f.captures, err = filterSet(place+".not_available_flows.capture_method", capture)
			}
		}
		if err != nil {
			return f, err
		}
	}
	return f, nil
}

func filterSet(place string, v any) (map[string]bool, error) {
	list, err := words(place, v)
	if err != nil {
		return nil, badFilter(place, "it must be one text with commas, or a list of texts")
	}
	set := make(map[string]bool, len(list))
	for _, word := range list {
		set[canonicalCountry(countryName(strings.TrimSpace(word)))] = true
	}
	return set, nil
}
