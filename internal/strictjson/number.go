package strictjson

import (
	"math"
	"strconv"
)

// numberEnd returns the position after the JSON number at pos, or the position of the first wrong byte and false.
func numberEnd(data []byte, pos int) (int, bool) {
	if pos < len(data) && data[pos] == '-' {
		pos++
	}
	start := pos
	if pos = digits(data, pos); pos == start {
		return pos, false
	}
	if data[start] == '0' && pos > start+1 {
		return start + 1, false
	}
	if pos < len(data) && data[pos] == '.' {
		start = pos + 1
		if pos = digits(data, start); pos == start {
			return pos, false
		}
	}
	if pos < len(data) && data[pos]|0x20 == 'e' {
		pos++
		if pos < len(data) && (data[pos] == '+' || data[pos] == '-') {
			pos++
		}
		start = pos
		if pos = digits(data, start); pos == start {
			return pos, false
		}
	}
	return pos, true
}

func digits(data []byte, pos int) int {
	for pos < len(data) && data[pos]-'0' <= 9 {
		pos++
	}
	return pos
}

// fitsFloat reports whether the number's nearest float64 is finite. Only long ones and ones with an exponent can fail.
func fitsFloat(raw []byte) bool {
	if len(raw) <= 32 {
		plain := true
		for _, c := range raw {
			plain = plain && c|0x20 != 'e'
		}
		if plain {
			return true
		}
	}
	_, ok := Float(raw)
	return ok
}

// pow10 are the powers of ten that a float64 holds exactly.
var pow10 = [...]float64{1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
	1e17, 1e18, 1e19, 1e20, 1e21, 1e22}

// Float returns the float64 nearest to the JSON number raw, the same as strconv.ParseFloat. ok is false when raw is not
// a JSON number or too large to be finite.
func Float(raw []byte) (value float64, ok bool) {
	if value, ok = shortFloat(raw); ok {
		return value, true
	}
	if end, valid := numberEnd(raw, 0); !valid || end != len(raw) {
		return 0, false
	}
	value, err := strconv.ParseFloat(string(raw), 64)
	return value, err == nil && !math.IsInf(value, 0)
}

// shortFloat is the exact fast path: up to 15 digits without an exponent are an integer below 2^53 over a power of ten,
// both exact, so that one correctly rounded division gives the nearest value.
func shortFloat(raw []byte) (float64, bool) {
	body := raw
	negative := len(body) > 0 && body[0] == '-'
	if negative {
		body = body[1:]
	}
	if len(body) == 0 || len(body) > 16 || body[0] == '.' || body[len(body)-1] == '.' {
		return 0, false
	}
	if body[0] == '0' && len(body) > 1 && body[1] != '.' {
		return 0, false
	}
	var mantissa uint64
	point := -1
	for i, c := range body {
		switch {
		case c-'0' <= 9:
			mantissa = mantissa*10 + uint64(c-'0')
		case c == '.' && point < 0:
			point = i
		default:
			return 0, false
		}
	}
	if mantissa >= 1<<53 {
		return 0, false
	}
	value := float64(mantissa)
	if point >= 0 {
		value /= pow10[len(body)-1-point]
	}
	if negative {
		value = -value
	}
	return value, true
}

// Uint returns the value of raw when it is a JSON number written as plain decimal digits that fit 64 bits.
func Uint(raw []byte) (value uint64, ok bool) {
	if len(raw) == 0 || len(raw) > 20 || (raw[0] == '0' && len(raw) > 1) {
		return 0, false
	}
	for _, c := range raw {
		d := uint64(c - '0')
		if d > 9 || value > (math.MaxUint64-d)/10 {
			return 0, false
		}
		value = value*10 + d
	}
	return value, true
}
