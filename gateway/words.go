package gateway

import "strings"

// DefaultCatalogue is the catalogue without configuration.
func DefaultCatalogue() *Catalogue {
	var keys []Key
	for _, name := range []string{"amount", "payment_amount", "surcharge_amount"} {
		keys = append(keys, Key{Name: name, Type: KeyInteger})
	}
	six, eight := int64(6), int64(8)
	keys = append(keys,
		Key{Name: "business_label", Type: KeyText},
		Key{Name: "card_bin", Type: KeyText, ExactLength: &six, Regex: "^[0-9]{6}$"},
		Key{Name: "extended_card_bin", Type: KeyText, ExactLength: &eight, Regex: "^[0-9]{8}$"},
		Key{Name: "issuer_name", Type: KeyText},
		Key{Name: "metadata", Type: KeyUDF},
	)
	for name, values := range defaultWords() {
		keys = append(keys, Key{Name: name, Type: KeyEnum, Values: strings.Fields(values)})
	}
	for _, name := range []string{"billing_country", "business_country", "issuer_country"} {
		keys = append(keys, Key{Name: name, Type: KeyEnum, Values: countryNames()})
	}
	c, err := newCatalogue(keys)
	if err != nil {
		panic("gateway: the default catalogue is wrong: " + err.Error())
	}
	return c
}

// The methods of the payment methods that have many.
const (
	bankDebits = "ach sepa sepa_guaranteed_debit becs bacs"

	bankRedirects = `bancontact_card bizum blik eft eps giropay ideal interac local_bank_redirect online_banking_czech_republic
		online_banking_finland online_banking_fpx online_banking_poland online_banking_slovakia online_banking_thailand open_banking_uk
		przelewy24 sofort trustly`

	bankTransfers = `ach sepa bacs sepa_bank_transfer instant_bank_transfer instant_bank_transfer_finland instant_bank_transfer_poland
		indonesian_bank_transfer local_bank_transfer multibanco permata_bank_transfer bca_bank_transfer bni_va bri_va cimb_va danamon_va
		mandiri_va pix pse`

	vouchers = "alfamart boleto efecty family_mart indomaret lawson mini_stop oxxo pago_efectivo pay_easy red_compra red_pagos seicomart seven_eleven"

	wallets = `ali_pay ali_pay_hk amazon_pay apple_pay bluecode cashapp dana gcash go_pay google_pay kakao_pay mb_way mifinity mobile_pay momo
		paypal paysera paze revolut_pay samsung_pay skrill swish touch_n_go twint venmo vipps we_chat_pay`

	payLaters = "affirm afterpay_clearpay alma atome breadpay flexiti klarna pay_bright payjustnow walley"

	cardRedirects = "benefit card_redirect knet momo_atm"

	realTime = "duit_now fps prompt_pay viet_qr"

	upis = "upi_collect upi_intent upi_qr"

	giftCards = "bhn_card_network givex pay_safe_card"

	networks = `visa VISA Visa mastercard MASTERCARD Mastercard MasterCard master_card amex AMEX Amex american_express AMERICAN_EXPRESS
		AmericanExpress discover DISCOVER Discover diners DINERS Diners diners_club DINERS_CLUB DinersClub jcb JCB Jcb union_pay UNION_PAY
		UNIONPAY UnionPay unionpay cartes_bancaires CARTES_BANCAIRES CartesBancaires interac INTERAC Interac rupay RUPAY RuPay Rupay
		maestro MAESTRO Maestro star STAR Star pulse PULSE Pulse accel ACCEL Accel nyce NYCE Nyce`

	currencies = `AED AFN ALL AMD ANG AOA ARS AUD AWG AZN BAM BBD BDT BGN BHD BIF BMD BND BOB BOV BRL BSD BTN BWP BYN BZD CAD CDF CHE CHF CHW
		CLF CLP CNY COP COU CRC CUC CUP CVE CZK DJF DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GNF GTQ GYD HKD HNL HRK HTG HUF
		IDR ILS INR IQD IRR ISK JMD JOD JPY KES KGS KHR KMF KPW KRW KWD KYD KZT LAK LBP LKR LRD LSL LYD MAD MDL MGA MKD MMK MNT MOP MRU MUR
		MVR MWK MXN MXV MYR MZN NAD NGN NIO NOK NPR NZD OMR PAB PEN PGK PHP PKR PLN PYG QAR RON RSD RUB RWF SAR SBD SCR SDG SEK SGD SHP SLE
		SLL SOS SRD SSP STD STN SVC SYP SZL THB TJS TMT TND TOP TRY TTD TWD TZS UAH UGX USD USN UYI UYU UYW UZS VED VES VND VUV WST XAF XAG
		XAU XBA XBB XBC XBD XCD XDR XOF XPD XPF XPT XSU XTS XUA XXX YER ZAR ZMW ZWL`
)

// defaultWords returns the enums of the default catalogue, by key.
func defaultWords() map[string]string {
	return map[string]string{
		"authentication_type": "three_ds no_three_ds",
		"capture_method":      "automatic manual manual_multiple scheduled sequential_automatic",
		"card":                "debit credit",
		"card_type":           "debit credit",
		"card_discovery":      "manual saved_card click_to_pay",
		"card_network":        networks,
		"currency":            currencies,
		"customer_device_display_size": `size320x568 size375x667 size390x844 size414x896 size428x926 size500x600 size600x400 size768x1024
			size834x1112 size834x1194 size1024x1366 size1280x720 size1366x768 size1440x900 size1920x1080 size2560x1440 size3840x2160`,
		"customer_device_platform": "web android ios",
		"customer_device_type":     "mobile tablet desktop gaming_console",
		"mandate_acceptance_type":  "online offline",
		"mandate_type":             "single_use multi_use",
		"payment_method": `card card_redirect pay_later wallet bank_redirect bank_transfer crypto bank_debit reward real_time_payment upi
		voucher gift_card open_banking mobile_payment network_token`,
		"payment_method_type": "credit debit card " + bankDebits + " " + bankRedirects + " " + bankTransfers + " " + vouchers + " " + wallets + " " +
			payLaters + " " + cardRedirects + " " + realTime + " " + upis + " " + giftCards +
			" crypto_currency classic evoucher direct_carrier_billing network_token open_banking_pis",
		"payment_type":          "normal new_mandate update_mandate setup_mandate recurring_mandate non_mandate ppt_mandate",
		"setup_future_usage":    "on_session off_session",
		"transaction_initiator": "customer merchant",

		"bank_debit":        bankDebits,
		"bank_redirect":     bankRedirects,
		"bank_transfer":     bankTransfers,
		"card_redirect":     cardRedirects,
		"crypto":            "crypto_currency",
		"gift_card":         giftCards,
		"mobile_payment":    "direct_carrier_billing",
		"network_token":     "network_token",
		"open_banking":      "open_banking_pis",
		"pay_later":         payLaters,
		"real_time_payment": realTime,
		"reward":            "classic evoucher",
		"upi":               upis,
		"voucher":           vouchers,
		"wallet":            wallets,
	}
}
