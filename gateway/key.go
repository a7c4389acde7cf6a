package gateway

// separator stands between the parts of a key. A caller that sends it inside a part mixes windows of its own merchant only.
const separator = '\x1f'

// windowKey appends the key of a payment's windows: order type, method type, method and the configured dimensions that the
// payment has. Dimensions returns what lies beyond the first three parts.
func windowKey(dst []byte, set *settings, f *Facts, udfs []string) (key []byte, dimension int) {
	dst = append(dst, f.OrderType...)
	dst = append(append(dst, separator), f.MethodType...)
	dst = append(append(dst, separator), f.Method...)
	dimension = len(dst)
	all := true
	for _, field := range set.dimensions.Fields {
		value := dimensionValue(field, f)
		if value == "" {
			all = false
			continue
		}
		dst = append(append(dst, separator), value...)
	}
	if all {
		for _, i := range set.dimensions.UDFs {
			if i >= 0 && i < len(udfs) && udfs[i] != "" {
				dst = append(append(dst, separator), udfs[i]...)
			}
		}
	}
	return dst, dimension
}

// dimensionValue is what a payment has for a configured field, "" when it has nothing.
func dimensionValue(field string, f *Facts) string {
	switch field {
	case "card_network":
		return f.Network
	case "card_is_in":
		return f.BIN
	case "currency":
		return f.Currency
	case "country":
		return f.Country
	case "auth_type":
		return foldAuth(f)
	}
	return ""
}

// foldAuth puts the ways of authentication of a card together; other payments keep their own.
func foldAuth(f *Facts) string {
	if f.AuthType == "" || f.MethodType != card {
		return f.AuthType
	}
	switch f.AuthType {
	case "THREE_DS", "THREE_DS2":
		return "THREE_DS"
	case "OTP", "OBO_OTP":
		return "OTP"
	}
	return "UNKNOWN"
}

const card = "CARD"

// standingKey appends the key of a gateway's elimination score.
func standingKey(dst []byte, f *Facts, g Name) []byte {
	dst = append(dst, f.OrderType...)
	dst = append(append(dst, separator), g...)
	dst = append(append(dst, separator), f.MethodType...)
	dst = append(append(dst, separator), f.Method...)
	if f.MethodType == card && f.CardType != "" {
		dst = append(append(dst, separator), f.CardType...)
	}
	return dst
}
