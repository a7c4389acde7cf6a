package decisionapi

import (
	"bytes"
	"errors"
	"io"

	"go.yaml.in/yaml/v3"
)

// Documents turns a text of YAML documents, of which JSON is one kind, into the JSON text of each. The numbers keep the
// way they were written. Anchors, repeated names and values that JSON does not have are Invalid faults that name the line.
func Documents(body []byte) ([][]byte, error) {
	dec := yaml.NewDecoder(bytes.NewReader(body))
	var texts [][]byte
	for {
		var doc yaml.Node
		err := dec.Decode(&doc)
		if errors.Is(err, io.EOF) {
			return texts, nil
		}
		if err != nil || len(doc.Content) != 1 {
			return nil, invalid("document %d is neither JSON nor YAML: %v", len(texts)+1, err)
		}
		text, err := appendYAML(nil, doc.Content[0], maxDepth)
		if err == nil {
			err = check(text)
		}
		if err != nil {
			return nil, err
		}
		texts = append(texts, text)
	}
}
