package strictjson

// Reader reads a text as [Parse] does, piece by piece, and builds nothing. It is
// for a caller who knows what must come next. A method that reports false has
// met something else, or a text that Parse refuses: then Parse says what is
// wrong. Repeated keys are the caller's to find.
type Reader struct{ p parser }

// NewReader returns a reader at the first value of the text; false where Parse
// would refuse it before.
func NewReader(text string, lim Limits) (Reader, bool) {
	r := Reader{parser{text: text, levels: lim.depth()}}
	if limit := lim.bytes(); limit >= 0 && len(text) > limit {
		return r, false
	}
	r.p.blank()
	return r, true
}

// Peek returns the first byte of what comes next, 0 at the end.
func (r *Reader) Peek() byte {
	if r.p.pos < len(r.p.text) {
		return r.p.text[r.p.pos]
	}
	return 0
}

// End reports whether nothing but blanks follows.
func (r *Reader) End() bool {
	r.p.blank()
	return r.p.pos == len(r.p.text)
}

// String reads a string.
func (r *Reader) String() (string, bool) {
	if r.Peek() != '"' {
		return "", false
	}
	return r.p.string()
}

// Number reads a number and returns its text.
func (r *Reader) Number() (string, bool) {
	n, ok := r.p.number()
	return string(n), ok
}

// Literal reads true, false or null.
func (r *Reader) Literal(word string) bool { return r.p.literal(word) }

// Open enters the object or array that comes next. It reports whether it has
// members or items; false, too, where it is too deep.
func (r *Reader) Open() (holds, ok bool) {
	end := r.Peek() + 2 // { and }, [ and ]
	if !r.p.open() {
		return false, false
	}
	r.p.blank()
	if r.p.next(end) {
		r.p.levels++
		return false, true
	}
	return true, true
}

// Key reads a member's key and the colon.
func (r *Reader) Key() (string, bool) {
	key, ok := r.String()
	if !ok {
		return "", false
	}
	r.p.blank()
	ok = r.p.next(':')
	r.p.blank()
	return key, ok
}

// More follows a member or item. It reports whether another comes, or else
// passes the end, } or ].
func (r *Reader) More(end byte) (more, ok bool) {
	r.p.blank()
	if r.p.next(',') {
		r.p.blank()
		return true, true
	}
	ok = r.p.next(end)
	r.p.levels++
	return false, ok
}
