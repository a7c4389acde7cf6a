package gateway

import (
	"cmp"
	"slices"
)

// country is a country by its ISO 3166-1 alpha-2 code and its English short name as rules write it.
type country struct{ code, name string }

// countries are all of ISO 3166-1, by code.
var countries = [...]country{
	{"AD", "Andorra"}, {"AE", "UnitedArabEmirates"}, {"AF", "Afghanistan"}, {"AG", "AntiguaAndBarbuda"},
	{"AI", "Anguilla"}, {"AL", "Albania"}, {"AM", "Armenia"}, {"AO", "Angola"}, {"AQ", "Antarctica"},
	{"AR", "Argentina"}, {"AS", "AmericanSamoa"}, {"AT", "Austria"}, {"AU", "Australia"}, {"AW", "Aruba"},
	{"AX", "AlandIslands"}, {"AZ", "Azerbaijan"}, {"BA", "BosniaAndHerzegovina"}, {"BB", "Barbados"},
	{"BD", "Bangladesh"}, {"BE", "Belgium"}, {"BF", "BurkinaFaso"}, {"BG", "Bulgaria"}, {"BH", "Bahrain"},
	{"BI", "Burundi"}, {"BJ", "Benin"}, {"BL", "SaintBarthelemy"}, {"BM", "Bermuda"}, {"BN", "BruneiDarussalam"},
	{"BO", "BoliviaPlurinationalState"}, {"BQ", "BonaireSintEustatiusAndSaba"}, {"BR", "Brazil"}, {"BS", "Bahamas"},
	{"BT", "Bhutan"}, {"BV", "BouvetIsland"}, {"BW", "Botswana"}, {"BY", "Belarus"}, {"BZ", "Belize"}, {"CA", "Canada"},
	{"CC", "CocosKeelingIslands"}, {"CD", "CongoDemocraticRepublic"}, {"CF", "CentralAfricanRepublic"}, {"CG", "Congo"},
	{"CH", "Switzerland"}, {"CI", "CoteDIvoire"}, {"CK", "CookIslands"}, {"CL", "Chile"}, {"CM", "Cameroon"},
	{"CN", "China"}, {"CO", "Colombia"}, {"CR", "CostaRica"}, {"CU", "Cuba"}, {"CV", "CaboVerde"}, {"CW", "Curacao"},
	{"CX", "ChristmasIsland"}, {"CY", "Cyprus"}, {"CZ", "Czechia"}, {"DE", "Germany"}, {"DJ", "Djibouti"},
	{"DK", "Denmark"}, {"DM", "Dominica"}, {"DO", "DominicanRepublic"}, {"DZ", "Algeria"}, {"EC", "Ecuador"},
	{"EE", "Estonia"}, {"EG", "Egypt"}, {"EH", "WesternSahara"}, {"ER", "Eritrea"}, {"ES", "Spain"}, {"ET", "Ethiopia"},
	{"FI", "Finland"}, {"FJ", "Fiji"}, {"FK", "FalklandIslandsMalvinas"}, {"FM", "MicronesiaFederatedStates"},
	{"FO", "FaroeIslands"}, {"FR", "France"}, {"GA", "Gabon"}, {"GB", "UnitedKingdomOfGreatBritainAndNorthernIreland"},
	{"GD", "Grenada"}, {"GE", "Georgia"}, {"GF", "FrenchGuiana"}, {"GG", "Guernsey"}, {"GH", "Ghana"},
	{"GI", "Gibraltar"}, {"GL", "Greenland"}, {"GM", "Gambia"}, {"GN", "Guinea"}, {"GP", "Guadeloupe"},
	{"GQ", "EquatorialGuinea"}, {"GR", "Greece"}, {"GS", "SouthGeorgiaAndTheSouthSandwichIslands"}, {"GT", "Guatemala"},
	{"GU", "Guam"}, {"GW", "GuineaBissau"}, {"GY", "Guyana"}, {"HK", "HongKong"},
	{"HM", "HeardIslandAndMcDonaldIslands"}, {"HN", "Honduras"}, {"HR", "Croatia"}, {"HT", "Haiti"}, {"HU", "Hungary"},
	{"ID", "Indonesia"}, {"IE", "Ireland"}, {"IL", "Israel"}, {"IM", "IsleOfMan"}, {"IN", "India"},
	{"IO", "BritishIndianOceanTerritory"}, {"IQ", "Iraq"}, {"IR", "IranIslamicRepublic"}, {"IS", "Iceland"},
	{"IT", "Italy"}, {"JE", "Jersey"}, {"JM", "Jamaica"}, {"JO", "Jordan"}, {"JP", "Japan"}, {"KE", "Kenya"},
	{"KG", "Kyrgyzstan"}, {"KH", "Cambodia"}, {"KI", "Kiribati"}, {"KM", "Comoros"}, {"KN", "SaintKittsAndNevis"},
	{"KP", "KoreaDemocraticPeoplesRepublic"}, {"KR", "KoreaRepublic"}, {"KW", "Kuwait"}, {"KY", "CaymanIslands"},
	{"KZ", "Kazakhstan"}, {"LA", "LaoPeoplesDemocraticRepublic"}, {"LB", "Lebanon"}, {"LC", "SaintLucia"},
	{"LI", "Liechtenstein"}, {"LK", "SriLanka"}, {"LR", "Liberia"}, {"LS", "Lesotho"}, {"LT", "Lithuania"},
	{"LU", "Luxembourg"}, {"LV", "Latvia"}, {"LY", "Libya"}, {"MA", "Morocco"}, {"MC", "Monaco"},
	{"MD", "MoldovaRepublic"}, {"ME", "Montenegro"}, {"MF", "SaintMartinFrenchPart"}, {"MG", "Madagascar"},
	{"MH", "MarshallIslands"}, {"MK", "NorthMacedonia"}, {"ML", "Mali"}, {"MM", "Myanmar"}, {"MN", "Mongolia"},
	{"MO", "Macao"}, {"MP", "NorthernMarianaIslands"}, {"MQ", "Martinique"}, {"MR", "Mauritania"}, {"MS", "Montserrat"},
	{"MT", "Malta"}, {"MU", "Mauritius"}, {"MV", "Maldives"}, {"MW", "Malawi"}, {"MX", "Mexico"}, {"MY", "Malaysia"},
	{"MZ", "Mozambique"}, {"NA", "Namibia"}, {"NC", "NewCaledonia"}, {"NE", "Niger"}, {"NF", "NorfolkIsland"},
	{"NG", "Nigeria"}, {"NI", "Nicaragua"}, {"NL", "Netherlands"}, {"NO", "Norway"}, {"NP", "Nepal"}, {"NR", "Nauru"},
	{"NU", "Niue"}, {"NZ", "NewZealand"}, {"OM", "Oman"}, {"PA", "Panama"}, {"PE", "Peru"}, {"PF", "FrenchPolynesia"},
	{"PG", "PapuaNewGuinea"}, {"PH", "Philippines"}, {"PK", "Pakistan"}, {"PL", "Poland"},
	{"PM", "SaintPierreAndMiquelon"}, {"PN", "Pitcairn"}, {"PR", "PuertoRico"}, {"PS", "PalestineState"},
	{"PT", "Portugal"}, {"PW", "Palau"}, {"PY", "Paraguay"}, {"QA", "Qatar"}, {"RE", "Reunion"}, {"RO", "Romania"},
	{"RS", "Serbia"}, {"RU", "RussianFederation"}, {"RW", "Rwanda"}, {"SA", "SaudiArabia"}, {"SB", "SolomonIslands"},
	{"SC", "Seychelles"}, {"SD", "Sudan"}, {"SE", "Sweden"}, {"SG", "Singapore"},
	{"SH", "SaintHelenaAscensionAndTristanDaCunha"}, {"SI", "Slovenia"}, {"SJ", "SvalbardAndJanMayen"},
	{"SK", "Slovakia"}, {"SL", "SierraLeone"}, {"SM", "SanMarino"}, {"SN", "Senegal"}, {"SO", "Somalia"},
	{"SR", "Suriname"}, {"SS", "SouthSudan"}, {"ST", "SaoTomeAndPrincipe"}, {"SV", "ElSalvador"},
	{"SX", "SintMaartenDutchPart"}, {"SY", "SyrianArabRepublic"}, {"SZ", "Eswatini"}, {"TC", "TurksAndCaicosIslands"},
	{"TD", "Chad"}, {"TF", "FrenchSouthernTerritories"}, {"TG", "Togo"}, {"TH", "Thailand"}, {"TJ", "Tajikistan"},
	{"TK", "Tokelau"}, {"TL", "TimorLeste"}, {"TM", "Turkmenistan"}, {"TN", "Tunisia"}, {"TO", "Tonga"},
	{"TR", "Turkey"}, {"TT", "TrinidadAndTobago"}, {"TV", "Tuvalu"}, {"TW", "Taiwan"}, {"TZ", "Tanzania"},
	{"UA", "Ukraine"}, {"UG", "Uganda"}, {"UM", "UnitedStatesMinorOutlyingIslands"}, {"US", "UnitedStatesOfAmerica"},
	{"UY", "Uruguay"}, {"UZ", "Uzbekistan"}, {"VA", "HolySee"}, {"VC", "SaintVincentAndTheGrenadines"},
	{"VE", "Venezuela"}, {"VG", "VirginIslandsBritish"}, {"VI", "VirginIslandsUS"}, {"VN", "VietNam"},
	{"VU", "Vanuatu"}, {"WF", "WallisAndFutuna"}, {"WS", "Samoa"}, {"YE", "Yemen"}, {"YT", "Mayotte"},
	{"ZA", "SouthAfrica"}, {"ZM", "Zambia"}, {"ZW", "Zimbabwe"},
}

// spellings are other names in use, by name; a rule may be written with either.
var spellings = [...]country{
	{"VE", "BolivarianRepublicOfVenezuela"}, {"BO", "Bolivia"}, {"BO", "BoliviaPlurinationalStateOf"},
	{"VG", "BritishVirginIslands"}, {"BN", "Brunei"}, {"CV", "CapeVerde"}, {"BQ", "CaribbeanNetherlands"},
	{"CC", "CocosIslands"}, {"CD", "CongoTheDemocraticRepublicOfThe"}, {"CZ", "CzechRepublic"},
	{"KP", "DemocraticPeoplesRepublicOfKorea"}, {"CD", "DemocraticRepublicOfTheCongo"}, {"TL", "EastTimor"},
	{"FK", "FalklandIslands"}, {"FM", "FederatedStatesOfMicronesia"}, {"GB", "GreatBritain"}, {"HK", "HongKongSar"},
	{"IR", "Iran"}, {"IR", "IslamicRepublicOfIran"}, {"CI", "IvoryCoast"}, {"LA", "Laos"}, {"MO", "Macau"},
	{"MK", "Macedonia"}, {"FM", "Micronesia"}, {"MD", "Moldova"}, {"KP", "NorthKorea"}, {"PS", "Palestine"},
	{"PN", "PitcairnIslands"}, {"BO", "PlurinationalStateOfBolivia"}, {"KR", "RepublicOfKorea"},
	{"MD", "RepublicOfMoldova"}, {"RU", "Russia"}, {"SH", "SaintHelena"}, {"MF", "SaintMartin"}, {"SX", "SintMaarten"},
	{"KR", "SouthKorea"}, {"PS", "StateOfPalestine"}, {"SZ", "Swaziland"}, {"SY", "Syria"},
	{"TW", "TaiwanProvinceOfChina"}, {"TZ", "TanzaniaUnitedRepublic"}, {"BS", "TheBahamas"}, {"GM", "TheGambia"},
	{"IM", "TheIsleOfMan"}, {"TR", "Turkiye"}, {"AE", "UAE"}, {"GB", "UnitedKingdom"},
	{"TZ", "UnitedRepublicOfTanzania"}, {"US", "UnitedStates"}, {"VI", "UnitedStatesVirginIslands"},
	{"VA", "VaticanCity"}, {"VE", "VenezuelaBolivarianRepublic"}, {"VN", "Vietnam"},
}

// countryName is the name of the country with the alpha-2 code, and what was given when there is none.
func countryName(code string) string {
	if at, found := slices.BinarySearchFunc(countries[:], code, func(c country, code string) int { return cmp.Compare(c.code, code) }); found {
		return countries[at].name
	}
	return code
}

// canonicalCountry is the name by which a country goes here, and what was given when it is not another spelling of one.
func canonicalCountry(name string) string {
	if at, found := slices.BinarySearchFunc(spellings[:], name, func(c country, name string) int { return cmp.Compare(c.name, name) }); found {
		return countryName(spellings[at].code)
	}
	return name
}

// countryNames are all names and spellings.
func countryNames() []string {
	names := make([]string, 0, len(countries)+len(spellings))
	for _, c := range countries {
		names = append(names, c.name)
	}
	for _, c := range spellings {
		names = append(names, c.name)
	}
	slices.Sort(names)
	return names
}
