package gateway

import (
	"context"
	"errors"
	"strings"
	"unicode"
	"unicode/utf8"

	"holdfast/fault"
)

// MerchantRow is a merchant as stored.
type MerchantRow struct {
	Key          int64 // store-made, never reused
	ID           MerchantID
	Name         string
	CreatedMS    int64
	Enabled      bool
	Priority     string // gateway_priority: names separated by commas
	CodePriority bool   // use_code_for_gateway_priority
	CategoryCode string
	Country      string
	Input        string // what the merchant was created with as its decider's input; empty for nothing
}

// AccountView reads merchants.
type AccountView interface {
	Merchant(id MerchantID) (MerchantRow, error)
	// MerchantOf returns the id of a key, empty when there is no such merchant.
	MerchantOf(key int64) (MerchantID, error)
	KeyView     // keys.go
	SettingView // configs.go
	OutageView  // outages.go
}

// AccountTx changes them.
type AccountTx interface {
	// CreateMerchant stores a merchant under a new key; Conflict when the id is taken.
	CreateMerchant(MerchantRow) (key int64, err error)
	// DeleteMerchant removes a merchant and everything that is stored under its key.
	DeleteMerchant(key int64) error
	KeyTx
	SettingTx
	OutageTx
}

// The bounds of a merchant's account.
const (
	maxPriority = 16 << 10 // bytes of gateway_priority
	maxInput    = 64 << 10 // bytes of the decider's input
	maxCode     = 64       // bytes of a category code, a country and the like
)

// NewMerchant is a merchant to be created. All but the ID may be empty.
type NewMerchant struct {
	ID           MerchantID
	Name         string
	Priority     string // names of gateways separated by commas
	CodePriority bool
	CategoryCode string
	Country      string
	// Input is JSON, stored as it is unless it has the form of an elimination config, which it then becomes.
	Input []byte
}

// CreateMerchant stores a merchant and its first API key, and returns the key: it is not shown again. Invalid when the id is
// taken or not 1 to MaxName bytes without control characters, or when another member is too long.
func (s *Service) CreateMerchant(ctx context.Context, n NewMerchant) (key string, err error) {
	const op = "CreateMerchant"
	if err := checkMerchant(op, n.ID); err != nil {
		return "", err
	}
	if err := n.check(op); err != nil {
		return "", err
	}
	row := MerchantRow{ID: n.ID, Name: n.Name, CreatedMS: s.nowMS(), Enabled: true, Priority: n.Priority, CodePriority: n.CodePriority,
		CategoryCode: n.CategoryCode, Country: n.Country}
	elimination, err := n.elimination()
	if err != nil {
		return "", err
	}
	if elimination == nil {
		row.Input = string(n.Input)
	}
	key, first := newKey(n.ID, "", row.CreatedMS)
	err = s.write(ctx, func(tx Tx) error {
		number, err := tx.CreateMerchant(row)
		if fault.KindOf(err) == fault.Conflict {
			return invalid(op, "merchant %s exists already", clip(string(n.ID)))
		}
		if err != nil {
			return err
		}
		return errors.Join(tx.CreateKey(number, first), tx.SetSetting(number, settingElimination, elimination))
	}, func() { s.merchants.appear(n.ID) })
	if err != nil {
		return "", err
	}
	return key, nil
}

func (n *NewMerchant) check(op string) error {
	for _, m := range [...]struct {
		name, text string
		most       int
	}{
		{"merchant_name", n.Name, nameMost}, {"gateway_priority", n.Priority, maxPriority}, {"merchant_category_code", n.CategoryCode, maxCode},
		{"country", n.Country, maxCode}, {"gateway_success_rate_based_decider_input", string(n.Input), maxInput},
	} {
		if len(m.text) > m.most {
			return invalid(op, "%s is longer than %d bytes", m.name, m.most)
		}
	}
	return nil
}

// elimination returns the elimination config that the input is, nil when it is something else.
func (n *NewMerchant) elimination() ([]byte, error) {
	var c EliminationData
	if len(n.Input) == 0 || n.Input[0] != '{' || unpack("CreateMerchant", n.Input, &c) != nil || c.Threshold == nil {
		return nil, nil
	}
	if err := c.check(); err != nil {
		return nil, err
	}
	return pack("CreateMerchant", c)
}

// Account is what is shown of a merchant.
type Account struct {
	ID    MerchantID
	Input string // its decider's input, as text; empty when nothing is stored
}

// Account returns a merchant. NotFound when there is none.
func (s *Service) Account(ctx context.Context, id MerchantID) (Account, error) {
	m, err := s.known(ctx, "Account", id)
	if err != nil {
		return Account{}, err
	}
	set := m.settings.Load()
	a := Account{ID: id, Input: set.row.Input}
	if a.Input == "" {
		a.Input = string(set.input)
	}
	return a, nil
}

// known returns the merchant of an id that came from outside; Invalid for what can be no id.
func (s *Service) known(ctx context.Context, op string, id MerchantID) (*merchant, error) {
	if err := checkMerchant(op, id); err != nil {
		return nil, err
	}
	return s.merchant(ctx, id)
}

// DeleteMerchant removes a merchant with its keys, configuration, features, algorithms, outages and scores; sessions at it are
// over. A merchant of that id that is created later starts afresh. NotFound when there is none.
func (s *Service) DeleteMerchant(ctx context.Context, id MerchantID) error {
	const op = "DeleteMerchant"
	if err := checkMerchant(op, id); err != nil {
		return err
	}
	now := s.options.Now()
	over := endOfMerchant(id, now, max(s.sessions.options.Life, s.sessions.options.RedirectLife))
	var keys []KeyRow
	err := s.write(ctx, func(tx Tx) error {
		row, err := tx.Merchant(id)
		if err != nil {
			return err
		}
		if keys, err = tx.Keys(row.Key); err != nil {
			return err
		}
		return errors.Join(dropAlgorithms(tx, id), tx.DeleteMerchant(row.Key), s.storeEnding(tx, over))
	}, func() {
		s.merchants.remove(id)
		for p := range purposeCount {
			s.actives.put(activeKey{id, p}, nil)
		}
		s.keys.forget(keys)
		s.sessions.ended.add(over, now)
	})
	return named(err, id)
}

// dropAlgorithms removes an owner's algorithms, the active ones too.
func dropAlgorithms(tx Tx, owner MerchantID) error {
	all, err := tx.Algorithms(owner)
	if err != nil {
		return err
	}
	for i := range all {
		if err := errors.Join(tx.Deactivate(owner, all[i].ID), tx.DropAlgorithm(all[i].ID)); err != nil {
			return err
		}
	}
	return nil
}

// checkMerchant returns Invalid unless id may be a merchant's.
func checkMerchant(op string, id MerchantID) error { return checkName(op, "merchant_id", string(id)) }

// checkName returns Invalid unless the text has 1 to MaxName bytes of UTF-8 without control characters.
func checkName(op, member, text string) error {
	switch {
	case text == "":
		return invalid(op, "%s is empty", member)
	case len(text) > MaxName:
		return invalid(op, "%s is longer than %d bytes", member, MaxName)
	}
	return checkText(op, member, text)
}

// checkText returns Invalid unless the text is UTF-8 without control characters.
func checkText(op, member, text string) error {
	if !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl) {
		return invalid(op, "%s has control characters or is not UTF-8", member)
	}
	return nil
}

// loadSettings reads everything that decisions need of one merchant; NotFound when there is none.
func (s *Service) loadSettings(v View, id MerchantID) (*settings, error) {
	row, err := v.Merchant(id)
	if err != nil {
		return nil, err
	}
	set := &settings{row: row, wide: &s.deployment}
	for name := range strings.SplitSeq(row.Priority, ",") {
		if name = strings.TrimSpace(name); name != "" {
			set.priority = append(set.priority, Name(name))
		}
	}
	if err := set.loadFeatures(v); err != nil {
		return nil, err
	}
	if err := set.loadConfigs(v); err != nil {
		return nil, err
	}
	if set.outages, err = loadOutages(v, row.Key, s.nowMS()); err != nil {
		return nil, err
	}
	if set.costs, err = loadCosts(v, row.Key); err != nil {
		return nil, err
	}
	set.active, err = s.loadActive(v, id)
	return set, err
}
