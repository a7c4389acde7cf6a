package gateway

import "time"

type outageList struct{}

func (o *outageList) empty() bool                                        { return true }
func (o *outageList) applies(Name, MerchantID, *Payment, time.Time) bool { return false }
