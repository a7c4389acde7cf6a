package gateway

import (
	"strconv"

	"holdfast/internal/strictjson"
)

// quoted is a caller's text as a message repeats it: clipped, in quotes.
func quoted(text string) string { return strconv.Quote(clip(text)) }

// operand reads {"type":…,"value":…}.
func (r *reader) operand() (o operand, err error) {
	var kind string
	var raw []byte
	err = r.object("a value", func(key string) (err error) {
		switch key {
		case "type":
			kind, err = r.text("type")
		case "value":
			raw = r.cursor.Skip()
		default:
			r.cursor.Skip()
		}
		return err
	})
	switch {
	case err != nil:
		return o, err
	case kind == "":
		return o, r.missing("type")
	case raw == nil:
		return o, r.missing("value")
	}
	var known bool
	if o.kind, known = ParseValueKind(kind); !known {
		return o, r.fail("%q is not a type of value", clip(kind))
	}
	outer := r.cursor
	r.cursor = strictjson.Walk(raw)
	err = r.content(&o)
	r.cursor = outer
	return o, err
}

// content reads the value of an operand whose type is known.
func (r *reader) content(o *operand) (err error) {
	switch o.kind {
	case ValueNumber:
		o.number, err = r.number("value")
	case ValueEnum, ValueText, ValueGlobal:
		o.text, err = r.text("value")
	case ValueMetadata:
		err = r.metadata(o)
	case ValueEnums:
		err = r.array("`value`", func() error {
			text, err := r.text("value")
			o.texts = append(o.texts, text)
			return r.member(err)
		})
	case ValueNumbers:
		err = r.array("`value`", func() error {
			n, err := r.number("value")
			o.numbers = append(o.numbers, n)
			return r.member(err)
		})
	case ValueRange:
		err = r.array("`value`", func() error {
			b, err := r.bound()
			o.bounds = append(o.bounds, b)
			return r.member(err)
		})
	}
	return err
}

// member counts one member of an array, unless it was wrong.
func (r *reader) member(err error) error {
	if err != nil {
		return err
	}
	return r.count(&r.members, MaxMembers, "values in arrays and global sets")
}

func (r *reader) metadata(o *operand) error {
	var value bool
	err := r.object("a metadata_variant", func(key string) (err error) {
		switch key {
		case "key":
			o.meta, err = r.text(key)
		case "value":
			value = true
			o.text, err = r.text(key)
		default:
			r.cursor.Skip()
		}
		return err
	})
	if err == nil && o.meta == "" {
		err = r.missing("key")
	}
	if err == nil && !value {
		err = r.missing("value")
	}
	return err
}

func (r *reader) bound() (b bound, err error) {
	var op, number bool
	err = r.object("a comparison of a range", func(key string) (err error) {
		switch key {
		case "comparison_type", "comparisonType":
			op = true
			b.op, err = r.comparison(key)
		case "number":
			number = true
			b.number, err = r.number(key)
		default:
			r.cursor.Skip()
		}
		return err
	})
	if err == nil && !op {
		err = r.missing("comparison_type")
	}
	if err == nil && !number {
		err = r.missing("number")
	}
	return b, err
}

// experiment checks the data of an ab_test: two algorithms, how much traffic the variant gets, and what stops it.
func (r *reader) experiment() error {
	var control, variant string
	var percent uint64
	err := r.object("an ab_test", func(key string) (err error) {
		switch key {
		case "control_algorithm_id":
			control, err = r.text(key)
		case "variant_algorithm_id":
			variant, err = r.text(key)
		case "variant_split_pct":
			if percent, err = r.number(key); err == nil && (percent < 1 || percent > 49) {
				err = r.refuse("`variant_split_pct` must be from 1 to 49")
			}
		case "min_sample_size":
			if r.cursor.Kind() == strictjson.Null {
				r.cursor.Skip()
				return nil
			}
			_, err = r.number(key)
		case "guardrail_threshold_pp":
			err = r.percentage(key)
		case "control_sr_config", "variant_sr_config":
			if kind := r.cursor.Kind(); kind != strictjson.Object && kind != strictjson.Null {
				return r.fail("`%s` must be an object", key)
			}
			r.cursor.Skip()
		default:
			r.cursor.Skip()
		}
		return err
	})
	switch {
	case err != nil:
		return err
	case control == "":
		return r.missing("control_algorithm_id")
	case variant == "":
		return r.missing("variant_algorithm_id")
	case percent == 0:
		return r.missing("variant_split_pct")
	case control == variant:
		return r.refuse("an ab_test compares two different algorithms")
	}
	return nil
}

// percentage reads a number from 0 to 100, or null.
func (r *reader) percentage(member string) error {
	raw := r.cursor.Skip()
	if strictjson.KindOf(raw) == strictjson.Null {
		return nil
	}
	if v, ok := strictjson.Float(raw); !ok || v < 0 || v > 100 {
		return r.fail("`%s` must be a number from 0 to 100", member)
	}
	return nil
}
