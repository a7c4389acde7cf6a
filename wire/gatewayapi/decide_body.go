package gatewayapi

import (
	"strings"

	"holdfast/gateway"
	"holdfast/internal/strictjson"
)

// decideBody is a decoded decide body. It is used again: its slices keep their memory.
type decideBody struct {
	fields
	req       gateway.Request
	hasAmount bool
	hasInfo   bool
}

// decode reads a whole body; members that the dialect does not know are ignored.
func (d *decideBody) decode(body []byte) error {
	c, ok := d.open(body)
	if !ok {
		return d.err
	}
	d.read(&c)
	return d.err
}

// read goes through the members of the object that c is inside of, and checks what must be there.
func (d *decideBody) read(c *strictjson.Cursor) {
	clear(d.req.Payment.UDFs)
	d.req = gateway.Request{Eligible: d.req.Eligible[:0], Payment: gateway.Payment{UDFs: d.req.Payment.UDFs[:0]}}
	d.hasAmount, d.hasInfo = false, false
	for c.More() {
		d.top(string(c.Key()), c)
	}
	p := &d.req.Payment
	d.require("merchantId", string(d.req.Merchant))
	if !d.hasInfo && d.err == nil {
		d.err = gateway.BadInput("missing field `paymentInfo`")
	}
	d.require("paymentInfo.paymentId", p.ID)
	if !d.hasAmount && d.err == nil {
		d.err = gateway.BadInput("missing field `paymentInfo.amount`")
	}
	d.require("paymentInfo.currency", p.Currency)
	d.require("paymentInfo.paymentType", p.OrderType)
	d.require("paymentInfo.paymentMethodType", p.MethodType)
	d.require("paymentInfo.paymentMethod", p.Method)
	for _, b := range [...][2]string{{"merchantId", string(d.req.Merchant)}, {"paymentId", p.ID}, {"paymentMethodType", p.MethodType},
		{"paymentMethod", p.Method}, {"cardIsin", p.BIN}, {"cardSwitchProvider", p.Network}, {"preferredGateway", string(p.Preferred)}} {
		d.bound(b[0], b[1])
	}
}

// top reads one member of the body.
func (d *decideBody) top(key string, c *strictjson.Cursor) {
	switch key {
	case "merchantId":
		d.req.Merchant = gateway.MerchantID(d.text(key, c.Skip()))
	case "eligibleGatewayList":
		d.texts(key, c, func(g string) bool {
			d.bound(key, g)
			d.req.Eligible = append(d.req.Eligible, gateway.Name(g))
			return len(d.req.Eligible) <= gateway.MaxEligible
		})
	case "rankingAlgorithm":
		d.req.Ranking = d.ranking(c.Skip())
	case "eliminationEnabled":
		d.req.Elimination = d.choice(key, c.Skip())
	case "enableMultiObjective":
		d.req.Cost = d.choice(key, c.Skip())
	case "paymentInfo":
		if c.Kind() != strictjson.Object {
			c.Skip()
			d.fail(key, "an object")
			return
		}
		d.hasInfo = true
		for c.Enter(); c.More(); {
			d.info(string(c.Key()), c)
		}
	default:
		c.Skip()
	}
}

func (d *decideBody) ranking(raw []byte) gateway.Ranking {
	switch text := d.text("rankingAlgorithm", raw); text {
	case "", "PL_BASED_ROUTING":
		return gateway.RankPriority
	case "SR_BASED_ROUTING":
		return gateway.RankSuccess
	case "NTW_BASED_ROUTING":
		return gateway.RankNetwork
	case "NTW_SR_HYBRID_ROUTING":
		return gateway.RankHybrid
	default:
		if d.err == nil {
			d.err = gateway.BadInput("rankingAlgorithm: unknown variant `" + clip(text) + "`")
		}
		return gateway.RankPriority
	}
}

// info reads one member of paymentInfo.
func (d *decideBody) info(key string, c *strictjson.Cursor) {
	p := &d.req.Payment
	switch key {
	case "udfs":
		d.texts(key, c, func(v string) bool {
			p.UDFs = append(p.UDFs, v)
			return len(p.UDFs) <= gateway.MaxUDFs
		})
	case "amount":
		p.Amount, d.hasAmount = d.number(key, c.Skip()), true
	case "currency":
		p.Currency = d.member(key, c.Skip(), currencies)
	case "country":
		p.Country = d.member(key, c.Skip(), countries)
	case "paymentType":
		p.OrderType = d.member(key, c.Skip(), paymentTypes)
	case "authType":
		if p.AuthType = d.member(key, c.Skip(), authTypes); p.AuthType == "THREE_DS_2" {
			p.AuthType = "THREE_DS2"
		}
	case "cardType":
		p.CardType = d.member(key, c.Skip(), cardTypes)
	case "paymentMethodType":
		p.MethodType = strings.ToUpper(d.text(key, c.Skip()))
	case "isEmi":
		p.IsEMI = d.choice(key, c.Skip()) == gateway.Yes
	case "emiTenure":
		p.EMITenure = d.whole(key, c.Skip())
	case "preferredGateway":
		p.Preferred = gateway.Name(d.text(key, c.Skip()))
	default:
		if to := d.free(key); to != nil {
			*to = d.text(key, c.Skip())
		} else {
			c.Skip()
		}
	}
}

// free is where a member goes that may be any text, nil for one that the dialect does not know.
func (d *decideBody) free(key string) *string {
	p := &d.req.Payment
	switch key {
	case "paymentId":
		return &p.ID
	case "customerId":
		return &p.Customer
	case "metadata":
		return &p.Metadata
	case "internalMetadata":
		return &p.Internal
	case "emiBank":
		return &p.EMIBank
	case "paymentMethod":
		return &p.Method
	case "paymentSource":
		return &p.Source
	case "cardIssuerBankName":
		return &p.Issuer
	case "cardIsin":
		return &p.BIN
	case "cardSwitchProvider":
		return &p.Network
	case "cardProgram":
		return &p.CardProgram
	case "cardIssuerCountry":
		return &p.IssuerCountry
	case "channel":
		return &p.Channel
	}
	return nil
}
