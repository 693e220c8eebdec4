package redact

import "unicode/utf8"

// Escapes strips terminal escape sequences and control characters other than
// newline and tab, and replaces invalid UTF-8. A carriage return becomes a
// newline, together with the newline that follows it. An operating system
// command (title, link, clipboard) that is not ended is dropped up to the end of
// its line. Bidirectional controls are left alone. The result gives itself when
// stripped again.
func Escapes(s string) string {
	if isClean(s) {
		return s
	}
	var st stripper
	return string(st.end(st.add(make([]byte, 0, len(s)), s)))
}

func isClean(s string) bool {
	ascii := true
	for i := range len(s) {
		c := s[i]
		if c < ' ' && c != '\n' && c != '\t' || c == 0x7F {
			return false
		}
		if c >= utf8.RuneSelf {
			ascii = false
			if c == 0xC2 && i+1 < len(s) && s[i+1] < 0xA0 { // U+0080 to U+009F
				return false
			}
		}
	}
	return ascii || utf8.ValidString(s)
}

// The states are those of ECMA-48 (control functions) as terminals implement it.
type stripState uint8

const (
	inText         stripState = iota
	inEscape                  // after ESC
	inIntermediate            // ESC and intermediate bytes: waits for the final one
	inControl                 // CSI: parameters, then a final byte
	inString                  // OSC, DCS, SOS, PM, APC: until BEL, ST or the end of the line
	inStringEscape            // ESC inside a string: a backslash makes it ST
)

// A stripper is Escapes for text that comes in pieces, in constant memory.
type stripper struct {
	state  stripState
	cr     bool   // the last character was a carriage return, already given as a newline
	broken string // the start of a character whose end has not come yet
}

// add appends to dst what is left of s.
func (st *stripper) add(dst []byte, s string) []byte {
	if st.broken != "" {
		s = st.broken + s
		st.broken = ""
	}
	for len(s) > 0 {
		r, size := rune(s[0]), 1
		if r >= utf8.RuneSelf {
			if !utf8.FullRuneInString(s) {
				st.broken = s
				return dst
			}
			r, size = utf8.DecodeRuneInString(s)
		}
		s = s[size:]
		dst = st.feed(dst, r)
	}
	return dst
}

// end gives what a broken character at the very end is replaced with.
func (st *stripper) end(dst []byte) []byte {
	for range len(st.broken) {
		dst = st.feed(dst, utf8.RuneError)
	}
	*st = stripper{}
	return dst
}

func (st *stripper) feed(dst []byte, r rune) []byte {
	final := 0x40 <= r && r <= 0x7E
	switch st.state {
	case inEscape:
		return st.escape(dst, r)
	case inIntermediate:
		switch {
		case 0x20 <= r && r <= 0x2F:
			return dst
		case 0x30 <= r && r <= 0x7E:
			st.state = inText
			return dst
		}
	case inControl:
		switch {
		case 0x20 <= r && r <= 0x3F:
			return dst
		case final:
			st.state = inText
			return dst
		}
	case inString, inStringEscape:
		return st.str(dst, r)
	}
	return st.text(dst, r)
}

// str takes a character of a control string.
func (st *stripper) str(dst []byte, r rune) []byte {
	switch {
	case st.state == inStringEscape && r == '\\':
		st.state = inText
	case st.state == inStringEscape:
		return st.escape(dst, r)
	case r == '\n' || r == '\r':
		return st.text(dst, r)
	case r == 0x07 || r == 0x9C || r == 0x18 || r == 0x1A: // BEL, ST, CAN, SUB
		st.state = inText
	case r == 0x1B:
		st.state = inStringEscape
	}
	return dst
}

// escape takes the character after ESC.
func (st *stripper) escape(dst []byte, r rune) []byte {
	switch {
	case r == '[':
		st.state = inControl
	case r == ']' || r == 'P' || r == 'X' || r == '^' || r == '_':
		st.state = inString
	case 0x20 <= r && r <= 0x2F:
		st.state = inIntermediate
	case 0x30 <= r && r <= 0x7E:
		st.state = inText
	default:
		return st.text(dst, r)
	}
	return dst
}

func (st *stripper) text(dst []byte, r rune) []byte {
	st.state = inText
	afterCR := st.cr
	st.cr = false
	switch {
	case r == '\n' && afterCR: // given already
	case r == '\n' || r == '\t':
		dst = append(dst, byte(r))
	case r == '\r':
		st.cr = true
		dst = append(dst, '\n')
	case r == 0x1B:
		st.state = inEscape
	case 0x80 <= r && r <= 0x9F: // C1: ESC and a letter in one
		return st.escape(dst, r-0x40)
	case r < ' ' || r == 0x7F:
	default:
		dst = utf8.AppendRune(dst, r)
	}
	return dst
}
