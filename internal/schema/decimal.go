package schema

import "bytes"

// decimal is an exact decimal number: 0.d1d2d3… times ten to the power of exp,
// without zeros at either end of the digits. Zero has no digits.
type decimal struct {
	negative bool
	digits   []byte
	exp      int
}

// decimalRoom holds the digits of any number that strictjson takes.
type decimalRoom [128]byte

// maxDecimalExp keeps sums of exponents away from overflow.
const maxDecimalExp = 1_000_000

// parseDecimal reads a JSON number. It allocates nothing: the digits go to
// room. It gives up on a text that strictjson would refuse for its length.
func parseDecimal(text string, room *decimalRoom) (decimal, bool) {
	var d decimal
	if text == "" || len(text) > len(room) {
		return d, false
	}
	if d.negative = text[0] == '-'; d.negative {
		text = text[1:]
	}
	d.digits = room[:0]
	point := false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '.':
			point = true
		case c == 'e' || c == 'E':
			exp, ok := parseExponent(text[i+1:])
			if !ok {
				return d, false
			}
			d.exp += exp
			return d.trimmed(), true
		case c < '0' || c > '9':
			return d, false
		default:
			if !point {
				d.exp++
			}
			d.digits = append(d.digits, c)
		}
	}
	return d.trimmed(), true
}

func parseExponent(text string) (int, bool) {
	negative := false
	if text != "" && (text[0] == '-' || text[0] == '+') {
		negative = text[0] == '-'
		text = text[1:]
	}
	n := 0
	for i := 0; i < len(text); i++ {
		if text[i] < '0' || text[i] > '9' {
			return 0, false
		}
		if n = n*10 + int(text[i]-'0'); n > maxDecimalExp {
			return 0, false
		}
	}
	if negative {
		n = -n
	}
	return n, text != ""
}

func (d decimal) trimmed() decimal {
	for len(d.digits) > 0 && d.digits[0] == '0' {
		d.digits = d.digits[1:]
		d.exp--
	}
	for len(d.digits) > 0 && d.digits[len(d.digits)-1] == '0' {
		d.digits = d.digits[:len(d.digits)-1]
	}
	if len(d.digits) == 0 {
		return decimal{}
	}
	return d
}

// integer reports whether d has no fraction. 1.0 and 1e2 are integers, as
// 2020-12 has it (validation, section 6.1.1).
func (d decimal) integer() bool { return d.exp >= len(d.digits) }

// compare returns -1, 0 or +1.
func (d decimal) compare(e decimal) int {
	if d.negative != e.negative {
		if d.negative {
			return -1
		}
		return +1
	}
	sign := +1
	if d.negative {
		sign = -1
	}
	switch {
	case len(d.digits) == 0 || len(e.digits) == 0:
		return sign * (min(len(d.digits), 1) - min(len(e.digits), 1))
	case d.exp != e.exp:
		if d.exp < e.exp {
			return -sign
		}
		return sign
	}
	return sign * bytes.Compare(d.digits, e.digits)
}
