package gateway

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
}

// AccountView reads merchants.
type AccountView interface {
	Merchant(id MerchantID) (MerchantRow, error)
	// MerchantOf returns the id of a key, empty when there is no such merchant.
	MerchantOf(key int64) (MerchantID, error)
}

// AccountTx changes them.
type AccountTx interface {
	// CreateMerchant stores a merchant under a new key; Conflict when the id is taken.
	CreateMerchant(MerchantRow) (key int64, err error)
}

// loadSettings reads everything that decisions need of one merchant; NotFound when there is none.
func (s *Service) loadSettings(v View, id MerchantID) (*settings, error) {
	row, err := v.Merchant(id)
	if err != nil {
		return nil, err
	}
	costs, err := loadCosts(v, row.Key)
	if err != nil {
		return nil, err
	}
	set := &settings{row: row, costs: costs}
	set.active, err = s.loadActive(v, id)
	return set, err
}

// loadDeployment reads what applies to all merchants.
func (s *Service) loadDeployment(View) (*deployment, error) {
	return &deployment{threshold: 0.05, penalty: 5, reward: 5.26}, nil
}
