package gateway

import "holdfast/fault"

// MerchantID names a merchant: 1 to MaxName bytes, as the merchant was created with.
type MerchantID string

// Name names a payment gateway as the caller spells it; names are compared byte by byte.
type Name string

// The bounds of what a caller may send.
const (
	MaxName     = 256 // bytes of a merchant id, a payment id or a gateway's name
	MaxEligible = 256 // gateways of one decision
	MaxUDFs     = 64  // user-defined fields of one payment
)

// Ranking says by what the gateways of a decision are put in order.
type Ranking uint8

// The ranking algorithms. A request that names none is ranked by priority.
const (
	RankPriority Ranking = iota // PL_BASED_ROUTING
	RankSuccess                 // SR_BASED_ROUTING
	RankNetwork                 // NTW_BASED_ROUTING
	RankHybrid                  // NTW_SR_HYBRID_ROUTING
)

// Choice is a yes, a no, or nothing said.
type Choice uint8

// The choices.
const (
	Unsaid Choice = iota
	No
	Yes
)

// Payment is what a caller tells about one payment. Absent and null members are empty. The strings are immutable and may be
// kept; a kept one holds on to the text of its request.
type Payment struct {
	ID            string
	Amount        float64
	Currency      string // ISO 4217 alpha-3
	Country       string // ISO 3166 alpha-2
	Customer      string
	Preferred     Name   // the gateway that the merchant would rather have
	OrderType     string // paymentType, such as ORDER_PAYMENT
	MethodType    string // upper-cased, such as CARD
	Method        string // as sent
	Source        string
	AuthType      string // such as THREE_DS
	Issuer        string // bank that issued the card
	BIN           string // cardIsin
	CardType      string // such as CREDIT
	Network       string // cardSwitchProvider, as sent
	CardProgram   string
	IssuerCountry string
	Channel       string
	EMIBank       string
	EMITenure     int
	IsEMI         bool
	UDFs          []string // index is the number of the field; null is empty
	Metadata      string   // a JSON document in a string, as sent; empty when absent
	Internal      string   // internalMetadata, likewise
}

// Request is one decision asked for.
type Request struct {
	Merchant    MerchantID
	Eligible    []Name // as sent, duplicates included
	Ranking     Ranking
	Elimination Choice
	Cost        Choice // enableMultiObjective
	Payment     Payment
	RequestID   string
}

// Approach says how a gateway was chosen; its text is what clients read.
type Approach string

// The approaches this service produces.
const (
	ApproachSuccess        Approach = "SR_SELECTION_V3_ROUTING"
	ApproachHedging        Approach = "SR_V3_HEDGING"
	ApproachDown           Approach = "SR_V3_DOWNTIME_ROUTING"
	ApproachAllDown        Approach = "SR_V3_ALL_DOWNTIME_ROUTING"
	ApproachGlobalDown     Approach = "SR_V3_GLOBAL_DOWNTIME_ROUTING"
	ApproachDownHedge      Approach = "SR_V3_DOWNTIME_HEDGING"
	ApproachAllDownHedge   Approach = "SR_V3_ALL_DOWNTIME_HEDGING"
	ApproachGlobalHedge    Approach = "SR_V3_GLOBAL_DOWNTIME_HEDGING"
	ApproachPriority       Approach = "PRIORITY_LOGIC"
	ApproachPriorityDown   Approach = "PL_DOWNTIME_ROUTING"
	ApproachPriorityAll    Approach = "PL_ALL_DOWNTIME_ROUTING"
	ApproachPriorityGlobal Approach = "PL_GLOBAL_DOWNTIME_ROUTING"
	ApproachDefault        Approach = "DEFAULT"
	ApproachNone           Approach = "NONE"
	ApproachPreference     Approach = "MERCHANT_PREFERENCE"
	ApproachNetwork        Approach = "NTW_BASED_ROUTING"
	ApproachCost           Approach = "SR_SELECTION_MULTI_OBJECTIVE"
)

// Scored is one gateway with its score.
type Scored struct {
	Gateway Name
	Score   float64 // 0 to 1
}

// Status is a payment's status as a caller reports it; its text is the wire's.
type Status string

// Class is what a status means for a gateway's score.
type Class uint8

// The classes.
const (
	Pending Class = iota // nothing is decided yet
	Success
	Failure
)

func invalid(op, format string, args ...any) *fault.Error {
	return fault.New("gateway."+op, fault.Invalid, format, args...)
}

func notFound(op, format string, args ...any) *fault.Error {
	return fault.New("gateway."+op, fault.NotFound, format, args...)
}

func conflict(op, format string, args ...any) *fault.Error {
	return fault.New("gateway."+op, fault.Conflict, format, args...)
}

// Facts are the parts of a payment by which configuration rows match and windows are told apart. AuthType is as sent.
type Facts struct {
	OrderType, MethodType, Method, CardType   string
	Network, BIN, Currency, Country, AuthType string
}
