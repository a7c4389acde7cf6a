package gateway

import (
	"cmp"
	"context"
	"encoding/json/v2"
	"slices"
	"time"

	"holdfast/fault"
	"holdfast/ident"
	"holdfast/internal/strictjson"
)

// Outage is a planned outage of one gateway. Matchers that are empty match everything.
type Outage struct {
	ID         string // a UUID
	Gateway    Name
	Merchant   MerchantID // empty for all merchants
	Bank       string
	MethodType string
	Method     string
	Metadata   OutageMetadata
	StartMS    int64
	EndMS      int64
}

// OutageMetadata matches what has no column of its own.
type OutageMetadata struct {
	CardType        string `json:"cardType,omitzero"`
	TransactionType string `json:"transactionType,omitzero"` // the payment's type, such as ORDER_PAYMENT
	Source          string `json:"sourceObject,omitzero"`
	App             string `json:"app,omitzero"`    // in the payment's own metadata, as the next
	Handle          string `json:"handle,omitzero"` // of a UPI address
}

// OutageView reads outages.
type OutageView interface {
	Outage(id string) (OutageRow, error)
	// Outages returns those of the merchant with the key, or with key 0 those of all merchants together, that end after endMS,
	// by start.
	Outages(merchant int64, endMS int64) ([]OutageRow, error)
	// EveryOutage returns those of everybody that end after endMS, by start: the most that start last.
	EveryOutage(endMS int64, most int) ([]OutageRow, error)
}

// OutageTx changes them.
type OutageTx interface {
	CreateOutage(OutageRow) error
	EndOutage(id string, endMS int64) error
	// PruneOutages forgets those of the merchant, or with key 0 of all merchants together, that ended before endMS, but the
	// newest keep.
	PruneOutages(merchant int64, endMS int64, keep int) error
}

// OutageRow is an outage as stored.
type OutageRow struct {
	Outage
	Key      int64 // of the merchant; 0 for all
	Document []byte
}

// The bounds of outages.
const (
	MaxOutages    = 200                 // of one merchant, or of all together, that have not ended
	outageLongest = 24 * time.Hour      // exclusive
	outageKept    = 30 * 24 * time.Hour // how long after its end an outage is still listed
	outageListed  = 1000                // that have ended and are kept, and in one answer: the newest
)

const methodUPI = "UPI"

// Ignored reports that the outage counts for no payment: one that names a method type alone does so for UPI only.
func (o *Outage) Ignored() bool {
	alone := o.Bank == "" && o.Method == "" && o.Metadata == (OutageMetadata{})
	return alone && o.MethodType != "" && o.MethodType != methodUPI
}

// runs reports whether the outage is on.
func (o *Outage) runs(ms int64) bool {
	return o.StartMS < ms && ms < o.EndMS && o.EndMS-o.StartMS < outageLongest.Milliseconds()
}

// matches reports whether a payment is among those that the outage is for.
func (o *Outage) matches(p *Payment) bool {
	switch {
	case o.Bank != "" && o.Bank != p.Issuer, o.MethodType != "" && o.MethodType != p.MethodType, o.Method != "" && o.Method != p.Method:
		return false
	case o.Metadata == OutageMetadata{}:
		return true
	}
	m := &o.Metadata
	return (m.CardType == "" || m.CardType == p.CardType) && (m.TransactionType == "" || m.TransactionType == p.OrderType) &&
		(m.Source == "" || m.Source == p.Source) && tells(p.Metadata, "app", m.App) && tells(p.Metadata, "handle", m.Handle)
}

// tells reports whether a payment's metadata has the member with that text; any has nothing to tell.
func tells(document, member, want string) bool {
	if want == "" {
		return true
	}
	text := []byte(document)
	c := strictjson.Walk(text)
	if document == "" || strictjson.Validate(text, metadataDepth) != nil || c.Kind() != strictjson.Object {
		return false
	}
	for c.Enter(); c.More(); {
		here := string(c.Key()) == member
		raw := c.Skip()
		if here {
			return strictjson.KindOf(raw) == strictjson.String && string(strictjson.AppendText(nil, raw)) == want
		}
	}
	return false
}

// outageList is the outages of one merchant, or of all together, that count; immutable. A nil list is empty.
type outageList struct{ all []Outage }

func (o *outageList) empty() bool { return o == nil || len(o.all) == 0 }

// applies reports whether the gateway is in an outage for the payment.
func (o *outageList) applies(g Name, p *Payment, now time.Time) bool {
	if o.empty() {
		return false
	}
	ms := now.UnixMilli()
	for i := range o.all {
		if one := &o.all[i]; one.Gateway == g && one.runs(ms) && one.matches(p) {
			return true
		}
	}
	return false
}

// loadOutages reads the outages of a merchant, or with key 0 of all together, that have not ended and count.
func loadOutages(v View, merchant, nowMS int64) (*outageList, error) {
	rows, err := v.Outages(merchant, nowMS)
	list := &outageList{}
	for i := range rows {
		o, bad := rows[i].open()
		if bad != nil {
			return nil, bad
		}
		if !o.Ignored() {
			list.all = append(list.all, o)
		}
	}
	return list, err
}

// open returns the outage of a row.
func (r *OutageRow) open() (Outage, error) {
	o := r.Outage
	if len(r.Document) == 0 {
		return o, nil
	}
	return o, unpack("Outage", r.Document, &o.Metadata)
}

// CreateOutage stores an outage and returns it with its id. Invalid when it does not end after its start or lasts 24 hours, or
// there are too many; Forbidden when the caller's credential does not cover the merchant, or, for all merchants, is not the
// operator's; NotFound when there is no such merchant.
func (s *Service) CreateOutage(ctx context.Context, p ident.Principal, o Outage) (Outage, error) {
	if err := o.check(); err != nil {
		return o, err
	}
	if err := s.coversOutage(p, o.Merchant); err != nil {
		return o, err
	}
	o.ID = newUUID()
	row := OutageRow{Outage: o}
	var err error
	if row.Document, err = json.Marshal(o.Metadata); err != nil {
		return o, fault.Wrap("gateway.CreateOutage", fault.Invalid, err, "metadata is not UTF-8")
	}
	return o, s.changeOutages(ctx, o.Merchant, func(tx Tx, key int64) error {
		now := s.nowMS()
		open, err := tx.Outages(key, now)
		if err != nil {
			return err
		}
		if len(open) >= MaxOutages {
			return invalid("CreateOutage", "there are %d outages that have not ended: end one first", len(open))
		}
		if err := tx.PruneOutages(key, now, outageListed); err != nil {
			return err
		}
		row := row
		row.Key = key
		return tx.CreateOutage(row)
	})
}

// check returns Invalid when the outage may not be stored.
func (o *Outage) check() error {
	const op = "Outage"
	if err := checkName(op, "gateway", string(o.Gateway)); err != nil {
		return err
	}
	if o.Merchant != "" {
		if err := checkMerchant(op, o.Merchant); err != nil {
			return err
		}
	}
	m := &o.Metadata
	for _, t := range [...]struct{ name, text string }{{"bank", o.Bank}, {"payment_method_type", o.MethodType}, {"payment_method", o.Method},
		{"cardType", m.CardType}, {"transactionType", m.TransactionType}, {"sourceObject", m.Source}, {"app", m.App}, {"handle", m.Handle}} {
		if t.text == "" {
			continue
		}
		if err := checkName(op, t.name, t.text); err != nil {
			return err
		}
	}
	switch {
	case o.EndMS <= o.StartMS:
		return invalid(op, "end_time must be after start_time")
	case o.EndMS-o.StartMS >= outageLongest.Milliseconds():
		return invalid(op, "an outage must be shorter than 24 hours")
	}
	return nil
}

// coversOutage returns Forbidden unless the principal may manage the outages of a merchant, or of all when it is empty.
func (s *Service) coversOutage(p ident.Principal, m MerchantID) error {
	if m != "" {
		return s.Covers(p, m)
	}
	if p.Kind == ident.Operator || p.Kind == ident.DevMode {
		return nil
	}
	return fault.New("gateway.Outage", fault.Forbidden, "an outage for all merchants needs the admin secret")
}

// changeOutages changes the outages of a merchant, or of all when it is empty, and makes the next request see it.
func (s *Service) changeOutages(ctx context.Context, m MerchantID, change func(tx Tx, key int64) error) error {
	if m != "" {
		return s.reconfigure(ctx, m, func(tx Tx, row MerchantRow) error { return change(tx, row.Key) })
	}
	var fresh *outageList
	return s.write(ctx, func(tx Tx) (err error) {
		if err := change(tx, 0); err != nil {
			return err
		}
		fresh, err = loadOutages(tx, 0, s.nowMS())
		return err
	}, func() { s.outages.Store(fresh) })
}

// EndOutage ends an outage now, or before it begins; one that has ended stays as it is. NotFound when there is none; Forbidden
// as in CreateOutage.
func (s *Service) EndOutage(ctx context.Context, p ident.Principal, id string) error {
	var row OutageRow
	err := s.storage.Read(ctx, func(v View) (err error) {
		row, err = v.Outage(id)
		return err
	})
	if err != nil {
		if fault.KindOf(err) == fault.NotFound {
			return notFound("EndOutage", "outage %s not found", clip(id))
		}
		return err
	}
	if err := s.coversOutage(p, row.Merchant); err != nil {
		return err
	}
	return s.changeOutages(ctx, row.Merchant, func(tx Tx, _ int64) error {
		return tx.EndOutage(id, max(row.StartMS, min(row.EndMS, s.nowMS())))
	})
}

// OutageQuery asks for outages.
type OutageQuery struct {
	Merchant MerchantID // those that concern it; empty for those of everybody, which only who covers everybody may ask
	Running  Choice     // Yes: those that are on
}

// Outages lists outages by start, at most the 1,000 that start last. A merchant sees its own and those of all merchants.
// NotFound when the query names a merchant that does not exist.
func (s *Service) Outages(ctx context.Context, p ident.Principal, q OutageQuery) ([]Outage, error) {
	if p.Kind != ident.Operator && p.Kind != ident.DevMode {
		q.Merchant = cmp.Or(q.Merchant, MerchantID(p.Scope.Tenant))
		if err := s.Covers(p, q.Merchant); err != nil {
			return nil, err
		}
	}
	if q.Merchant != "" {
		if err := checkMerchant("Outages", q.Merchant); err != nil {
			return nil, err
		}
	}
	now := s.nowMS()
	since := now - outageKept.Milliseconds()
	if q.Running == Yes {
		since = now
	}
	var rows []OutageRow
	err := s.storage.Read(ctx, func(v View) (err error) {
		rows, err = listOutages(v, q.Merchant, since)
		return err
	})
	if err != nil {
		return nil, err
	}
	all := []Outage{}
	for i := range rows {
		o, err := rows[i].open()
		if err != nil {
			return nil, err
		}
		if q.Running != Yes || o.runs(now) {
			all = append(all, o)
		}
	}
	return all[max(0, len(all)-outageListed):], nil
}

// listOutages reads the outages that concern a merchant, or every one.
func listOutages(v View, id MerchantID, sinceMS int64) ([]OutageRow, error) {
	if id == "" {
		return v.EveryOutage(sinceMS, outageListed)
	}
	m, err := v.Merchant(id)
	if err != nil {
		return nil, named(err, id)
	}
	own, err := v.Outages(m.Key, sinceMS)
	if err != nil {
		return nil, err
	}
	shared, err := v.Outages(0, sinceMS)
	own = append(own, shared...)
	slices.SortStableFunc(own, func(a, b OutageRow) int { return cmp.Compare(a.StartMS, b.StartMS) })
	return own, err
}
