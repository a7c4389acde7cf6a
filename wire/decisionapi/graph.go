package decisionapi

import (
	"bytes"
	"math"
	"strconv"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"holdfast/internal/strictjson"
)

// graphText is the JSON text of a graph that was sent as JSON or as YAML.
func graphText(body []byte) ([]byte, error) {
	trimmed := bytes.TrimSpace(body)
	switch {
	case len(trimmed) == 0:
		return nil, invalid("invalid JSON: empty body")
	case !utf8.Valid(body) || bytes.IndexByte(body, 0) >= 0:
		return nil, invalid("a binary program is not accepted: send the graph as JSON or YAML")
	case trimmed[0] == '{':
		return body, check(body)
	}
	return fromYAML(body)
}

// fromYAML turns one YAML document into JSON text. It walks the parsed tree itself, because the usual decoding into maps
// loses order and lets names repeat. Anchors are refused: a page of them can stand for gigabytes.
func fromYAML(body []byte) ([]byte, error) {
	dec := yaml.NewDecoder(bytes.NewReader(body))
	var doc, more yaml.Node
	if err := dec.Decode(&doc); err != nil || len(doc.Content) != 1 {
		return nil, invalid("the program is neither JSON nor YAML")
	}
	if dec.Decode(&more) == nil {
		return nil, invalid("the program holds more than one YAML document")
	}
	if doc.Content[0].Kind != yaml.MappingNode {
		return nil, invalid("the program must be a mapping with the member graph")
	}
	text, err := appendYAML(nil, doc.Content[0], maxDepth)
	if err != nil {
		return nil, err
	}
	return text, check(text)
}

// appendYAML appends a node as JSON; depth more levels may be opened.
func appendYAML(dst []byte, n *yaml.Node, depth int) (_ []byte, err error) {
	if depth == 0 {
		return nil, invalid("line %d: nested too deeply", n.Line)
	}
	if n.Anchor != "" || n.Kind == yaml.AliasNode {
		return nil, invalid("line %d: anchors and aliases are not accepted", n.Line)
	}
	switch n.Kind {
	case yaml.MappingNode:
		dst = append(dst, '{')
		for i := 0; i+1 < len(n.Content); i += 2 {
			if i > 0 {
				dst = append(dst, ',')
			}
			if n.Content[i].Kind != yaml.ScalarNode {
				return nil, invalid("line %d: a name must be plain text", n.Content[i].Line)
			}
			dst = append(strictjson.AppendString(dst, n.Content[i].Value), ':')
			if dst, err = appendYAML(dst, n.Content[i+1], depth-1); err != nil {
				return nil, err
			}
		}
		return append(dst, '}'), nil
	case yaml.SequenceNode:
		dst = append(dst, '[')
		for i, item := range n.Content {
			if i > 0 {
				dst = append(dst, ',')
			}
			if dst, err = appendYAML(dst, item, depth-1); err != nil {
				return nil, err
			}
		}
		return append(dst, ']'), nil
	case yaml.ScalarNode:
		return appendScalar(dst, n)
	}
	return nil, invalid("line %d: not understood", n.Line)
}

// appendScalar appends a YAML scalar by the type that its text has.
func appendScalar(dst []byte, n *yaml.Node) ([]byte, error) {
	switch n.ShortTag() {
	case "!!null":
		return append(dst, "null"...), nil
	case "!!bool":
		var v bool
		if n.Decode(&v) == nil {
			return strconv.AppendBool(dst, v), nil
		}
	case "!!int", "!!float":
		if strictjson.Validate([]byte(n.Value), 1) == nil && strictjson.KindOf([]byte(n.Value)) == strictjson.Number {
			return append(dst, n.Value...), nil // as written
		}
		var v float64
		if n.Decode(&v) == nil && !math.IsNaN(v) && !math.IsInf(v, 0) {
			return strictjson.AppendFloat(dst, v), nil
		}
	case "!!str", "!!timestamp":
		return strictjson.AppendString(dst, n.Value), nil
	}
	return nil, invalid("line %d: `%s` is not a value that JSON has", n.Line, n.Value)
}
