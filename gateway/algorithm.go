package gateway

import (
	"strconv"

	"holdfast/internal/strictjson"
)

// The bounds of an algorithm. What goes past one is refused when it is stored, with a message that names the bound.
const (
	MaxNesting     = 32      // nested statements inside one another
	MaxConditions  = 4096    // of one program, and as many statements
	MaxRules       = 1024    // of one program
	MaxConnectors  = 256     // of one output, and as many splits
	MaxMembers     = 100_000 // of a program's arrays and global sets together, references followed
	maxAlgorithm   = 128     // nested containers of an algorithm's JSON
	maxSplitWeight = 255
)

// Connector is where a payment may go: a gateway and, when the merchant has several accounts there, which.
type Connector struct {
	Gateway Name
	ID      string // empty when there is none: null on the wire
}

// Split is one part of a divided output: Weight of the sum of all weights goes to Connectors.
type Split struct {
	Weight     uint8
	Connectors []Connector // one in a volume split, a list in a volume split of priorities
}

// OutputKind says how an output is made of connectors.
type OutputKind uint8

// The kinds of output.
const (
	OutputSingle        OutputKind = iota // one connector
	OutputPriority                        // a list, best first
	OutputSplit                           // a volume split
	OutputSplitPriority                   // a volume split of lists
)

var outputNames = [...]string{"single", "priority", "volume_split", "volume_split_priority"}

// String is the kind's name in the rule language.
func (k OutputKind) String() string { return outputNames[k] }

// Output is what an algorithm, or one of its rules, answers. It is immutable.
type Output struct {
	Kind       OutputKind
	Connectors []Connector // single and priority
	Splits     []Split     // the other two
	total      uint64      // of the weights
}

// AlgorithmKind is the type of an algorithm.
type AlgorithmKind uint8

// The types of algorithm.
const (
	KindSingle AlgorithmKind = iota
	KindPriority
	KindSplit
	KindAdvanced
	KindExperiment
)

var algorithmKinds = [...]string{"single", "priority", "volume_split", "advanced", "ab_test"}

// String is the type's name on the wire.
func (k AlgorithmKind) String() string { return algorithmKinds[k] }

// AlgorithmRow is a routing algorithm as stored.
type AlgorithmRow struct {
	ID          string
	Owner       MerchantID // who made it; need not be a merchant that exists
	Name        string
	Description string
	Purpose     Purpose
	Data        []byte // {"type":…,"data":…}, compact
	Metadata    []byte // JSON; nil when there is none
	CreatedUS   int64  // microseconds since 1970, UTC
	ModifiedUS  int64
}

// Algorithm is a stored routing algorithm, compiled. It is immutable and may be evaluated by many goroutines.
type Algorithm struct {
	ID      string
	Name    string
	Kind    AlgorithmKind
	output  *Output  // of every kind but advanced and experiment
	program *program // of an advanced one
	broken  error    // why it cannot be evaluated; nil
	changed int64    // ModifiedUS of the row it was made from
	size    int      // bytes of the text it was made from
}

// compileAlgorithm makes a stored algorithm ready to be evaluated. It checks the form alone: what the catalogue says was
// checked when the algorithm was stored, and an operator who changes the catalogue does not break stored rules. An algorithm
// that cannot be read is broken: it answers why to whoever evaluates it.
func compileAlgorithm(row *AlgorithmRow) *Algorithm {
	a := &Algorithm{ID: row.ID, Name: row.Name, changed: row.ModifiedUS, size: len(row.Data)}
	doc, err := parseAlgorithm(row.Data)
	if err != nil {
		a.broken = err
		return a
	}
	a.Kind, a.output = doc.kind, doc.output
	if doc.kind == KindAdvanced {
		a.program = compileProgram(doc.program)
	}
	return a
}

// document is an algorithm as parsed.
type document struct {
	kind     AlgorithmKind
	output   *Output      // of a kind without conditions
	program  *programText // of an advanced one
	warnings []string     // what is accepted although it is probably not meant
}

// parseAlgorithm reads {"type":…,"data":…}.
func parseAlgorithm(text []byte) (*document, error) {
	if err := strictjson.Validate(text, maxAlgorithm); err != nil {
		return nil, invalid("parse", "could not parse the algorithm: %s", err.Error())
	}
	r := &reader{cursor: strictjson.Walk(text)}
	var kind string
	var data []byte
	err := r.object("the algorithm", func(key string) (err error) {
		switch key {
		case "type":
			kind, err = r.text("type")
		case "data":
			data = r.cursor.Skip()
		default:
			r.cursor.Skip()
		}
		return err
	})
	switch {
	case err != nil:
		return nil, err
	case kind == "":
		return nil, r.missing("type")
	case data == nil:
		return nil, r.missing("data")
	}
	r.cursor = strictjson.Walk(data)
	return r.document(kind)
}

// document reads the data of an algorithm of the kind named.
func (r *reader) document(kind string) (*document, error) {
	d := &document{}
	var err error
	switch kind {
	case "single":
		d.kind = KindSingle
		d.output, err = r.singleOutput()
	case "priority":
		d.kind = KindPriority
		d.output, err = r.priorityOutput()
	case "volume_split":
		d.kind = KindSplit
		d.output, err = r.splitOutput(OutputSplit)
	case "advanced":
		d.kind = KindAdvanced
		d.program, err = r.program()
	case "ab_test":
		d.kind = KindExperiment
		err = r.experiment()
	default:
		return nil, r.fail("the type %q is none of single, priority, volume_split, advanced and ab_test", clip(kind))
	}
	d.warnings = r.warnings
	return d, err
}

// output reads {"priority":[…]} and its like, and the published variant {"type":…,"data":…}.
func (r *reader) output(what string) (*Output, error) {
	var out *Output
	var kind string
	var data []byte
	members := 0
	err := r.object(what, func(key string) (err error) {
		switch key {
		case "type":
			kind, err = r.text("type")
			return err
		case "data":
			data = r.cursor.Skip()
			return nil
		}
		if members++; members > 1 {
			return r.fail("%s must have exactly one of single, priority, volume_split and volume_split_priority", what)
		}
		out, err = r.outputOf(key, what)
		return err
	})
	switch {
	case err != nil || out != nil:
		return out, err
	case kind == "" || data == nil:
		return nil, r.fail("%s must have exactly one of single, priority, volume_split and volume_split_priority", what)
	}
	outer := r.cursor
	r.cursor = strictjson.Walk(data)
	out, err = r.outputOf(kind, what)
	r.cursor = outer
	return out, err
}

func (r *reader) outputOf(kind, what string) (*Output, error) {
	switch kind {
	case "single", "straight_through":
		return r.singleOutput()
	case "priority":
		return r.priorityOutput()
	case "volume_split":
		return r.splitOutput(OutputSplit)
	case "volume_split_priority":
		return r.splitOutput(OutputSplitPriority)
	}
	return nil, r.fail("%s: %q is none of single, priority, volume_split and volume_split_priority", what, clip(kind))
}

func (r *reader) singleOutput() (*Output, error) {
	c, err := r.connector()
	if err != nil {
		return nil, err
	}
	return &Output{Kind: OutputSingle, Connectors: []Connector{c}}, nil
}

func (r *reader) priorityOutput() (*Output, error) {
	list, err := r.connectors("a priority list")
	if err != nil {
		return nil, err
	}
	return &Output{Kind: OutputPriority, Connectors: list}, nil
}

// splitOutput reads a list of splits. Weights that add up to something other than 100 are taken as they are, with a warning.
func (r *reader) splitOutput(kind OutputKind) (*Output, error) {
	out, connectors := &Output{Kind: kind}, 0
	err := r.array(kind.String(), func() error {
		if len(out.Splits) == MaxConnectors {
			return r.refuse("%s has more than %d splits", kind, MaxConnectors)
		}
		s, err := r.split(kind)
		out.Splits = append(out.Splits, s)
		out.total += uint64(s.Weight)
		if connectors += len(s.Connectors); err == nil && connectors > MaxConnectors {
			err = r.refuse("%s has more than %d connectors", kind, MaxConnectors)
		}
		return err
	})
	switch {
	case err != nil:
		return nil, err
	case len(out.Splits) == 0:
		return nil, r.refuse("%s has no splits", kind)
	case out.total == 0:
		return nil, r.refuse("%s: every split is 0, so nothing would be chosen", kind)
	case out.total != 100:
		r.warnings = append(r.warnings, r.where()+kind.String()+": the splits add up to "+strconv.FormatUint(out.total, 10)+", not to 100")
	}
	return out, nil
}

func (r *reader) split(kind OutputKind) (s Split, err error) {
	var weight, output bool
	err = r.object("a split", func(key string) (err error) {
		switch key {
		case "split":
			weight = true
			raw := r.cursor.Skip()
			n, ok := strictjson.Uint(raw)
			if !ok || n > maxSplitWeight {
				return r.fail("a split must be a whole number from 0 to %d", maxSplitWeight)
			}
			s.Weight = uint8(n)
		case "output":
			output = true
			if kind == OutputSplitPriority {
				s.Connectors, err = r.connectors("the output of a split")
				return err
			}
			c, err := r.connector()
			s.Connectors = []Connector{c}
			return err
		default:
			r.cursor.Skip()
		}
		return nil
	})
	if err == nil && !weight {
		err = r.missing("split")
	}
	if err == nil && !output {
		err = r.missing("output")
	}
	return s, err
}

func (r *reader) connectors(what string) (list []Connector, err error) {
	list = []Connector{}
	err = r.array(what, func() error {
		if len(list) == MaxConnectors {
			return r.refuse("%s has more than %d connectors", what, MaxConnectors)
		}
		c, err := r.connector()
		list = append(list, c)
		return err
	})
	return list, err
}

func (r *reader) connector() (c Connector, err error) {
	err = r.object("a connector", func(key string) (err error) {
		var text string
		switch key {
		case "gateway_name":
			text, err = r.text(key)
			c.Gateway = Name(text)
		case "gateway_id":
			c.ID, err = r.optional(key)
		default:
			r.cursor.Skip()
		}
		return err
	})
	if err == nil && c.Gateway == "" {
		err = r.missing("gateway_name")
	}
	return c, err
}
