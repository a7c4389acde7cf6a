package gateway

// network ranks the networks of a debit card instead of the gateways.
func (c *choice) network() error {
	a := c.answer
	if !c.set.debitOn {
		return debitOff(c.merchant.id)
	}
	if err := c.rankDebit(); err != nil {
		return err
	}
	a.Approach = ApproachNetwork
	if len(a.eligible) > 0 {
		a.Gateway = a.eligible[0]
		a.Fallbacks = append(a.Fallbacks, a.eligible[1:]...)
	}
	c.remember()
	return nil
}

// hybrid adds the ranking of networks to a decision by success rate. A card that it cannot be made for leaves it out.
func (c *choice) hybrid() {
	if c.set.debitOn {
		_ = c.rankDebit() // the decision stands without it
	}
}

func (c *choice) rankDebit() (err error) {
	a := c.answer
	a.debit, err = rankNetworks(c.set, &c.request.Payment, c.service.debits.Load())
	if err == nil {
		a.Debit = &a.debit
	}
	return err
}
