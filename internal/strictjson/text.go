package strictjson

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf16"
	"unicode/utf8"
)

// The eight bytes of a word are looked at together: subtracting one from each byte carries into the high bit of those that
// were zero. A borrow can make false hits, but only above a true one, so that the lowest hit is always right.
const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// plainRun returns the position of the first byte from i on that a string may not hold as it is or that needs a look:
// a quote, a backslash, a control character or a byte beyond ASCII. It reads eight bytes at a time.
func plainRun(data []byte, i int) int {
	for ; i+8 <= len(data); i += 8 {
		w := binary.LittleEndian.Uint64(data[i:])
		quote, slash := w^(ones*'"'), w^(ones*'\\')
		found := (w | (w - ones*0x20) | (quote - ones) | (slash - ones)) & highs
		if found != 0 {
			return i + bits.TrailingZeros64(found)/8
		}
	}
	for ; i < len(data); i++ {
		if c := data[i]; c < 0x20 || c >= utf8.RuneSelf || c == '"' || c == '\\' {
			break
		}
	}
	return i
}

// nextMark returns the position of the first quote or backslash from i on, len(data) when there is none.
func nextMark(data []byte, i int) int {
	for ; i+8 <= len(data); i += 8 {
		w := binary.LittleEndian.Uint64(data[i:])
		quote, slash := w^(ones*'"'), w^(ones*'\\')
		if found := ((quote-ones)&^quote | (slash-ones)&^slash) & highs; found != 0 {
			return i + bits.TrailingZeros64(found)/8
		}
	}
	for ; i < len(data) && data[i] != '"' && data[i] != '\\'; i++ {
	}
	return min(i, len(data))
}

// escapeLen returns the length of the escape at the start of b, both halves of a surrogate pair included, or 0 when it
// is not a valid one.
func escapeLen(b []byte) int {
	if len(b) < 2 {
		return 0
	}
	switch b[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		r, ok := hex4(b[2:])
		if !ok {
			return 0
		}
		if !utf16.IsSurrogate(r) {
			return 6
		}
		if len(b) < 12 || b[6] != '\\' || b[7] != 'u' {
			return 0
		}
		low, ok := hex4(b[8:])
		if !ok || utf16.DecodeRune(r, low) == utf8.RuneError {
			return 0
		}
		return 12
	}
	return 0
}

// hex4 reads four hexadecimal digits.
func hex4(b []byte) (rune, bool) {
	if len(b) < 4 {
		return 0, false
	}
	var r rune
	for _, c := range b[:4] {
		switch {
		case c-'0' <= 9:
			c -= '0'
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			c = c | 0x20 - 'a' + 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

// AppendText appends the decoded content of raw, a validated JSON string with its quotes, to dst. Text that is not a
// string appends nothing.
func AppendText(dst, raw []byte) []byte {
	body, ok := inner(raw)
	if !ok {
		return dst
	}
	for len(body) > 0 {
		n := 0
		for n < len(body) && body[n] != '\\' {
			n++
		}
		dst = append(dst, body[:n]...)
		if body = body[n:]; len(body) == 0 {
			break
		}
		size := escapeLen(body)
		if size == 0 {
			return append(dst, body...) // only for text that was never validated
		}
		dst = utf8.AppendRune(dst, unescape(body[:size]))
		body = body[size:]
	}
	return dst
}

// unescape returns the rune of one valid escape.
func unescape(esc []byte) rune {
	switch esc[1] {
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	case 'u':
		r, _ := hex4(esc[2:])
		if len(esc) == 12 {
			low, _ := hex4(esc[8:])
			r = utf16.DecodeRune(r, low)
		}
		return r
	default:
		return rune(esc[1])
	}
}

// Text returns the decoded content of raw, a validated JSON string with its quotes. Without escapes it is a part of raw
// itself; otherwise it is written into *scratch, which grows as needed and is overwritten by the next call.
func Text(scratch *[]byte, raw []byte) []byte {
	if body, ok := Plain(raw); ok {
		return body
	}
	*scratch = AppendText((*scratch)[:0], raw)
	return *scratch
}

// Plain returns the content of raw, a validated JSON string with its quotes, when it holds no escapes and so needs no
// decoding; ok is false otherwise and when raw is not a string.
func Plain(raw []byte) (body []byte, ok bool) {
	body, ok = inner(raw)
	if !ok {
		return nil, false
	}
	if nextMark(body, 0) < len(body) {
		return nil, false
	}
	return body, true
}

// inner strips the quotes.
func inner(raw []byte) ([]byte, bool) {
	if len(raw) < 2 || raw[0] != '"' || raw[len(raw)-1] != '"' {
		return nil, false
	}
	return raw[1 : len(raw)-1], true
}
