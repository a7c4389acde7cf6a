package gateway

import (
	"context"
	"slices"
	"strings"

	"holdfast/fault"
)

// dimensionFields are the facts of a payment that may make windows of their own.
var dimensionFields = [...]string{"card_network", "card_is_in", "currency", "country", "auth_type"}

// DimensionData is a merchant's choice of dimensions as it was sent.
type DimensionData struct {
	UDFs   []int        `json:"udfs"`
	Fields List[string] `json:"fields"`
}

// check returns Invalid for fields that there are not, naming them, and for numbers that no user-defined field has.
func (d *DimensionData) check() error {
	var unknown []string
	for _, f := range d.Fields {
		if !slices.Contains(dimensionFields[:], f) && len(unknown) < 8 {
			unknown = append(unknown, clip(f))
		}
	}
	if len(unknown) > 0 {
		return invalid("Dimensions", "unknown fields: %s; there are %s", strings.Join(unknown, ", "), strings.Join(dimensionFields[:], ", "))
	}
	if len(d.Fields) > MaxUDFs || len(d.UDFs) > MaxUDFs {
		return invalid("Dimensions", "there are more than %d dimensions", MaxUDFs)
	}
	for _, n := range d.UDFs {
		if n < 0 || n >= MaxUDFs {
			return invalid("Dimensions", "udfs: %d is not from 0 to %d", n, MaxUDFs-1)
		}
	}
	return nil
}

// dimensions makes what decisions read: in order, each dimension once.
func (d *DimensionData) dimensions() Dimensions {
	return Dimensions{Fields: distinct(d.Fields), UDFs: distinct(d.UDFs), Stored: true}
}

func distinct[T comparable](all []T) (once []T) {
	for _, v := range all {
		if !slices.Contains(once, v) {
			once = append(once, v)
		}
	}
	return once
}

// Dimensions returns what a merchant has stored; nothing when it has stored nothing, or does not exist.
func (s *Service) Dimensions(ctx context.Context, id MerchantID) (data DimensionData, err error) {
	if err := checkMerchant("Dimensions", id); err != nil {
		return data, err
	}
	err = s.storage.Read(ctx, func(v View) error {
		m, err := v.Merchant(id)
		if err != nil {
			return absent(err)
		}
		document, err := v.Setting(m.Key, settingDimensions)
		if err != nil || document == nil {
			return err
		}
		return unpack("Dimensions", document, &data)
	})
	return data, err
}

// SetDimensions replaces what a merchant has stored. Its windows by older dimensions stay, unused. Invalid for what is not a
// dimension, NotFound when there is no such merchant.
func (s *Service) SetDimensions(ctx context.Context, id MerchantID, data DimensionData) error {
	if err := checkMerchant("SetDimensions", id); err != nil {
		return err
	}
	if err := data.check(); err != nil {
		return err
	}
	document, err := pack("SetDimensions", data)
	if err != nil {
		return err
	}
	return s.reconfigure(ctx, id, func(tx Tx, m MerchantRow) error { return tx.SetSetting(m.Key, settingDimensions, document) })
}

// absent takes that there is no such merchant for an answer.
func absent(err error) error {
	if fault.KindOf(err) == fault.NotFound {
		return nil
	}
	return err
}
