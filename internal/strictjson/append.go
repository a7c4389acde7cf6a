package strictjson

import (
	"math"
	"strconv"
	"unicode/utf8"
)

// AppendString appends text as a JSON string with quotes. Bytes that are not UTF-8 become U+FFFD.
func AppendString[T string | []byte](dst []byte, text T) []byte {
	dst = append(dst, '"')
	from := 0
	for i := 0; i < len(text); {
		c := text[i]
		if c >= 0x20 && c < utf8.RuneSelf && c != '"' && c != '\\' {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			r, n := decodeRune(text, i)
			if r != utf8.RuneError || n > 1 {
				i += n
				continue
			}
		}
		dst = append(dst, text[from:i]...)
		dst = appendEscape(dst, c)
		i++
		from = i
	}
	dst = append(dst, text[from:]...)
	return append(dst, '"')
}

// decodeRune decodes the rune at i of a text of either type without copying it.
func decodeRune[T string | []byte](text T, i int) (rune, int) {
	var buf [utf8.UTFMax]byte
	n := copy(buf[:], text[i:])
	return utf8.DecodeRune(buf[:n])
}

func appendEscape(dst []byte, c byte) []byte {
	const hex = "0123456789abcdef"
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\n':
		return append(dst, '\\', 'n')
	case '\r':
		return append(dst, '\\', 'r')
	case '\t':
		return append(dst, '\\', 't')
	case '\b':
		return append(dst, '\\', 'b')
	case '\f':
		return append(dst, '\\', 'f')
	}
	if c >= utf8.RuneSelf {
		return append(dst, "\uFFFD"...)
	}
	return append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
}

// AppendFloat appends the shortest JSON number that reads back as value, with an exponent below 1e-6 and from 1e21 on.
// JSON has no word for what is not finite: that becomes null.
func AppendFloat(dst []byte, value float64) []byte {
	if math.IsNaN(value) || math.IsInf(value, 0) {
		return append(dst, "null"...)
	}
	abs := math.Abs(value)
	if abs == 0 || (abs >= 1e-6 && abs < 1e21) {
		return strconv.AppendFloat(dst, value, 'f', -1, 64)
	}
	dst = strconv.AppendFloat(dst, value, 'e', -1, 64)
	// strconv writes at least two exponent digits; the shortest form drops the zero of e-07.
	if n := len(dst); n >= 4 && dst[n-4] == 'e' && dst[n-3] == '-' && dst[n-2] == '0' {
		dst[n-2] = dst[n-1]
		dst = dst[:n-1]
	}
	return dst
}

// AppendUint appends value in decimal.
func AppendUint(dst []byte, value uint64) []byte { return strconv.AppendUint(dst, value, 10) }

// AppendInt appends value in decimal.
func AppendInt(dst []byte, value int64) []byte { return strconv.AppendInt(dst, value, 10) }

// AppendBool appends true or false.
func AppendBool[T ~bool](dst []byte, value T) []byte { return strconv.AppendBool(dst, bool(value)) }
