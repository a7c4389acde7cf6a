package gateway

import (
	"context"
	"encoding/json/jsontext"
	"slices"
	"time"

	"holdfast/fault"
)

// The bounds of what one owner may store.
const (
	maxAlgorithms     = 10_000
	maxAlgorithmBytes = 32 << 20 // of all of an owner's algorithms together
	maxDescription    = 4096
)

var purposeNames = [...]string{"payment", "payout", "three_ds_authentication"}

// String is the purpose's name on the wire.
func (p Purpose) String() string { return purposeNames[p] }

// ParsePurpose returns the purpose with the name; payment for none. Invalid when there is no such purpose.
func ParsePurpose(name string) (Purpose, error) {
	if name == "" {
		return ForPayment, nil
	}
	if i := slices.Index(purposeNames[:], name); i >= 0 {
		return Purpose(i), nil
	}
	return 0, invalid("ParsePurpose", "algorithm_for %s is none of payment, payout and three_ds_authentication", quoted(name))
}

// RuleView reads algorithms. An owner is any text.
type RuleView interface {
	Algorithm(id string) (AlgorithmRow, error)
	// Algorithms returns an owner's algorithms, oldest first.
	Algorithms(owner MerchantID) ([]AlgorithmRow, error)
	// ActiveAlgorithms returns those of them that are active, by purpose.
	ActiveAlgorithms(owner MerchantID) ([]AlgorithmRow, error)
	// AlgorithmUse says how many algorithms an owner has, and how many bytes their data and metadata take.
	AlgorithmUse(owner MerchantID) (count, bytes int64, err error)
}

// RuleTx changes algorithms.
type RuleTx interface {
	// PutAlgorithm stores a row in place of the one with its id.
	PutAlgorithm(AlgorithmRow) error
	DropAlgorithm(id string) error
	// Activate makes an algorithm the active one of its owner and purpose, in place of another.
	Activate(owner MerchantID, p Purpose, id string) error
	// Deactivate does nothing when the algorithm is not active.
	Deactivate(owner MerchantID, id string) error
}

// NewAlgorithm is an algorithm to be stored.
type NewAlgorithm struct {
	ID          string // empty makes one
	Owner       MerchantID
	Name        string
	Description string
	Purpose     string // as on the wire; empty is payment
	Algorithm   []byte // {"type":…,"data":…}
	Metadata    []byte // JSON; empty for none
}

// CreateAlgorithm stores an algorithm; it is not active yet. The warnings tell what is accepted although it is hardly meant.
// Invalid names what is wrong; Conflict when the id is taken.
func (s *Service) CreateAlgorithm(ctx context.Context, n NewAlgorithm) (AlgorithmRow, []string, error) {
	row := AlgorithmRow{ID: n.ID, Owner: n.Owner, Name: n.Name, Description: n.Description}
	var warnings []string
	purpose, err := ParsePurpose(n.Purpose)
	if err == nil {
		row.Purpose = purpose
		err = checkNames(&row)
	}
	if err == nil {
		row.Data, warnings, err = s.checkAlgorithm(n.Algorithm)
	}
	if err == nil {
		row.Metadata, err = compact(n.Metadata)
	}
	if err != nil {
		return AlgorithmRow{}, nil, err
	}
	if row.ID == "" {
		row.ID = "routing_" + newUUID()
	}
	row.CreatedUS = s.options.Now().UnixMicro()
	row.ModifiedUS = row.CreatedUS
	err = s.write(ctx, func(tx Tx) error {
		if _, err := tx.Algorithm(row.ID); err == nil {
			return conflict("CreateAlgorithm", "an algorithm with the id %s exists", clip(row.ID))
		} else if fault.KindOf(err) != fault.NotFound {
			return err
		}
		if err := room(tx, &row, 0); err != nil {
			return err
		}
		return tx.PutAlgorithm(row)
	}, nil)
	return row, warnings, err
}

func checkNames(row *AlgorithmRow) error {
	switch {
	case row.Owner == "" || len(row.Owner) > MaxName:
		return invalid("CreateAlgorithm", "created_by has 1 to %d bytes", MaxName)
	case row.Name == "" || len(row.Name) > MaxName:
		return invalid("CreateAlgorithm", "name has 1 to %d bytes", MaxName)
	case len(row.ID) > MaxName:
		return invalid("CreateAlgorithm", "rule_id has at most %d bytes", MaxName)
	case len(row.Description) > maxDescription:
		return invalid("CreateAlgorithm", "description has at most %d bytes", maxDescription)
	}
	return nil
}

// room refuses a row that does not fit what its owner may store; freed is what it takes the place of.
func room(v View, row *AlgorithmRow, freed int64) error {
	count, bytes, err := v.AlgorithmUse(row.Owner)
	switch {
	case err != nil:
		return err
	case freed == 0 && count >= maxAlgorithms:
		return invalid("CreateAlgorithm", "an owner has at most %d algorithms; delete some", maxAlgorithms)
	case bytes-freed+rowBytes(row) > maxAlgorithmBytes:
		return invalid("CreateAlgorithm", "the algorithms of an owner have at most %d bytes together; delete some", maxAlgorithmBytes)
	}
	return nil
}

func rowBytes(row *AlgorithmRow) int64 { return int64(len(row.Data) + len(row.Metadata)) }

// checkAlgorithm parses an algorithm, holds it to the catalogue and returns it compact.
func (s *Service) checkAlgorithm(text []byte) (data []byte, warnings []string, err error) {
	doc, err := parseAlgorithm(text)
	if err != nil {
		return nil, nil, err
	}
	if doc.program != nil {
		if err := s.options.Catalogue.check(doc.program); err != nil {
			return nil, nil, err
		}
	}
	data, err = compact(text)
	return data, doc.warnings, err
}

// compact returns JSON without white space, nil for nothing and for null.
func compact(text []byte) ([]byte, error) {
	v := jsontext.Value(slices.Clone(text))
	if len(v) == 0 || v.Kind() == 'n' {
		return nil, nil
	}
	if err := v.Compact(); err != nil {
		return nil, invalid("CreateAlgorithm", "could not parse the request: not JSON")
	}
	return v, nil
}

// AlgorithmChange says what of a stored algorithm is to be replaced.
type AlgorithmChange struct {
	ID          string
	Owner       MerchantID
	Name        string
	Description *string // nil keeps the stored one
	Algorithm   []byte
}

// UpdateAlgorithm replaces an algorithm that is not active. Invalid when it is active, does not exist or is another owner's.
func (s *Service) UpdateAlgorithm(ctx context.Context, c AlgorithmChange) (AlgorithmRow, []string, error) {
	var row AlgorithmRow
	data, warnings, err := s.checkAlgorithm(c.Algorithm)
	if err != nil {
		return AlgorithmRow{}, nil, err
	}
	now := s.options.Now().UnixMicro()
	err = s.write(ctx, func(tx Tx) (err error) {
		if row, err = owned(tx, c.Owner, c.ID); err != nil {
			return err
		}
		if err = idle(tx, &row); err != nil {
			return err
		}
		freed := rowBytes(&row)
		row.Name, row.Data = c.Name, data
		if c.Description != nil {
			row.Description = *c.Description
		}
		row.ModifiedUS = max(now, row.ModifiedUS+1) // a compiled program is told by it
		if err = checkNames(&row); err != nil {
			return err
		}
		if err = room(tx, &row, freed); err != nil {
			return err
		}
		return tx.PutAlgorithm(row)
	}, nil)
	if err != nil { // the change may still be running: row is not ours to look at
		return AlgorithmRow{}, nil, err
	}
	return row, warnings, nil
}

// owned returns the algorithm with the id; Invalid when there is none or it is another owner's.
func owned(v View, owner MerchantID, id string) (AlgorithmRow, error) {
	row, err := v.Algorithm(id)
	switch {
	case fault.KindOf(err) == fault.NotFound && err != nil:
		return row, invalid("routing", "there is no algorithm %s", clip(id))
	case err != nil:
		return row, err
	case row.Owner != owner:
		return row, invalid("routing", "the algorithm %s is not one of %s", clip(id), clip(string(owner)))
	}
	return row, nil
}

// idle returns Invalid when the algorithm is active.
func idle(v View, row *AlgorithmRow) error {
	rows, err := v.ActiveAlgorithms(row.Owner)
	if err != nil {
		return err
	}
	for i := range rows {
		if rows[i].ID == row.ID {
			return invalid("routing", "the algorithm %s is active: deactivate it first", clip(row.ID))
		}
	}
	return nil
}

// ActivateAlgorithm makes an algorithm the active one of its purpose; the next request sees it. Invalid when there is no such
// algorithm or it is another owner's.
func (s *Service) ActivateAlgorithm(ctx context.Context, owner MerchantID, id string) error {
	return s.switchActive(ctx, owner, func(tx Tx) error {
		row, err := owned(tx, owner, id)
		if err != nil {
			return err
		}
		return tx.Activate(owner, row.Purpose, id)
	})
}

// DeactivateAlgorithm makes an algorithm no longer the active one; nothing happens when it is not. Invalid when it is another
// owner's.
func (s *Service) DeactivateAlgorithm(ctx context.Context, owner MerchantID, id string) error {
	return s.switchActive(ctx, owner, func(tx Tx) error {
		row, err := tx.Algorithm(id)
		switch {
		case err == nil && row.Owner != owner:
			return invalid("routing", "the algorithm %s is not one of %s", clip(id), clip(string(owner)))
		case err != nil && fault.KindOf(err) != fault.NotFound:
			return err
		}
		return tx.Deactivate(owner, id)
	})
}

// switchActive changes what is active for an owner and makes the next request see it, whether or not the owner is a merchant.
func (s *Service) switchActive(ctx context.Context, owner MerchantID, change func(Tx) error) error {
	var all [purposeCount]*Algorithm
	var fresh *settings // nil when the owner is no merchant
	return s.write(ctx, func(tx Tx) (err error) {
		if err = change(tx); err != nil {
			return err
		}
		fresh, err = s.loadSettings(tx, owner)
		switch {
		case err == nil:
			all = fresh.active
		case fault.KindOf(err) == fault.NotFound:
			all, err = s.loadActive(tx, owner)
		}
		return err
	}, func() {
		for p, alg := range all {
			s.actives.put(activeKey{owner, Purpose(p)}, alg)
		}
		if fresh != nil {
			s.adopt(owner, fresh)
		}
	})
}

// DeleteAlgorithm forgets an algorithm. NotFound when there is none; Invalid when it is active or another owner's.
func (s *Service) DeleteAlgorithm(ctx context.Context, owner MerchantID, id string) error {
	return s.write(ctx, func(tx Tx) error {
		row, err := tx.Algorithm(id)
		switch {
		case err != nil && fault.KindOf(err) == fault.NotFound:
			return notFound("DeleteAlgorithm", "there is no algorithm %s", clip(id))
		case err != nil:
			return err
		case row.Owner != owner:
			return invalid("DeleteAlgorithm", "the algorithm %s is not one of %s", clip(id), clip(string(owner)))
		}
		if err := idle(tx, &row); err != nil {
			return err
		}
		return tx.DropAlgorithm(id)
	}, nil)
}

// Algorithms returns an owner's algorithms, oldest first.
func (s *Service) Algorithms(ctx context.Context, owner MerchantID) (rows []AlgorithmRow, err error) {
	err = s.storage.Read(ctx, func(v View) (err error) {
		rows, err = v.Algorithms(owner)
		return err
	})
	return rows, err
}

// ActiveAlgorithms returns an owner's active algorithms, one of each purpose at most.
func (s *Service) ActiveAlgorithms(ctx context.Context, owner MerchantID) (rows []AlgorithmRow, err error) {
	err = s.storage.Read(ctx, func(v View) (err error) {
		rows, err = v.ActiveAlgorithms(owner)
		return err
	})
	return rows, err
}

// RoutingKeys are the catalogue's keys, by name.
func (s *Service) RoutingKeys() []Key { return s.options.Catalogue.Keys() }

// Stamp is a stored time as rules tell it: UTC, with microseconds.
func Stamp(us int64) string { return time.UnixMicro(us).UTC().Format("2006-01-02 15:04:05.000000") }
