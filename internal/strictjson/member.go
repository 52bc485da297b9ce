package strictjson

import "strings"

// Member is one member of an object, with the value's own text.
type Member struct {
	Key   string // unescaped
	Value string // byte for byte as written, without blanks around it
}

// Members returns the members of the object in text in the order in which
// they were written. It checks the text as [ParseObject] does. It serves where
// some members are replaced and the others must keep their bytes.
func Members(text string, lim Limits) ([]Member, error) {
	obj, err := ParseObject(text, lim)
	if err != nil {
		return nil, err
	}
	members := make([]Member, 0, len(obj))
	p := parser{text: text}
	p.blank()
	p.pos++ // the brace; from here on the text is known to be good
	for range len(obj) {
		p.blank()
		key, _ := p.string()
		p.blank()
		p.pos++ // the colon
		p.blank()
		start := p.pos
		p.skip()
		members = append(members, Member{Key: key, Value: text[start:p.pos]})
		p.blank()
		p.pos++ // the comma or brace
	}
	return members, nil
}

// skip passes one value of a text that was parsed before.
func (p *parser) skip() {
	for open := 0; ; {
		switch p.text[p.pos] {
		case '"':
			p.string()
		case '{', '[':
			open++
			p.pos++
			continue
		case '}', ']':
			open--
			p.pos++
		case ',', ':', ' ', '\t', '\n', '\r':
			p.pos++
			continue
		default: // a number or literal, to its last letter
			for p.pos < len(p.text) && strings.IndexByte(",:]} \t\n\r", p.text[p.pos]) < 0 {
				p.pos++
			}
		}
		if open == 0 {
			return
		}
	}
}

// IsEmptyObject reports whether text is a spelling of the empty object that
// models use for a tool without parameters: nothing, blanks, null, {}, or a
// JSON string of one of these. Whether {} is allowed at all is the schema's
// business: for a tool with required keys all of them are invalid.
func IsEmptyObject(text string) bool {
	if emptySpelling(text) {
		return true
	}
	text = strings.Trim(text, " \t\n\r")
	if !strings.HasPrefix(text, `"`) {
		return false
	}
	v, err := Parse(text, Limits{})
	s, ok := v.(string)
	return err == nil && ok && emptySpelling(s)
}

func emptySpelling(text string) bool {
	text = strings.Trim(text, " \t\n\r")
	if text == "" || text == "null" {
		return true
	}
	inside, ok := strings.CutPrefix(text, "{")
	return ok && strings.Trim(inside, " \t\n\r") == "}"
}
