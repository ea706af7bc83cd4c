package picture

import (
	"fmt"
	"strings"
)

// scan goes through a text in Graphviz's language as far as its strings, comments and braces. It is an error if one of them does not
// end, or if something stands behind the graph: Graphviz would find that in the next graph that it reads.
func scan(dot string) error {
	s := scanner{rest: dot, line: 1, lineStarts: true}
	for s.rest != "" && s.err == nil {
		s.next()
	}
	switch {
	case s.err != nil:
		return s.err
	case s.depth > 0:
		return fmt.Errorf("line %d: the graph's { of line %d is not closed", s.line, s.opened)
	case !s.closed:
		return fmt.Errorf("there is no graph in the text")
	}
	return nil
}

type scanner struct {
	rest         string
	line, opened int // counted from 1
	depth        int // of braces
	closed       bool
	lineStarts   bool // nothing but this line's end was passed before
	err          error
}

// next passes a character, or a string or comment as a whole.
func (s *scanner) next() {
	switch c := s.rest[0]; {
	case strings.HasPrefix(s.rest, "//"), c == '#' && s.lineStarts:
		s.pass(strings.IndexByte(s.rest+"\n", '\n'))
	case strings.HasPrefix(s.rest, "/*"):
		s.passTo("comment", strings.Index(s.rest[2:], "*/"), 4)
	case c == ' ', c == '\t', c == '\r', c == '\n':
		s.pass(1)
	case s.closed:
		s.err = fmt.Errorf("line %d: there is more behind the graph: %.20q", s.line, s.rest)
	case c == '"':
		s.passTo("string", endOfString(s.rest[1:]), 2)
	case c == '<':
		s.passTo("string in < and >", endOfHTML(s.rest), 1)
	default:
		s.brace(c)
		s.pass(1)
	}
}

func (s *scanner) brace(c byte) {
	switch {
	case c == '{':
		if s.depth++; s.depth == 1 {
			s.opened = s.line
		}
	case c == '}' && s.depth == 0:
		s.err = fmt.Errorf("line %d: a } that closes nothing", s.line)
	case c == '}':
		s.depth--
		s.closed = s.depth == 0
	}
}

func (s *scanner) pass(n int) {
	s.line += strings.Count(s.rest[:n], "\n")
	s.lineStarts = strings.HasSuffix(s.rest[:n], "\n")
	s.rest = s.rest[n:]
}

// passTo passes what ends at the place end, and more, which are its marks.
func (s *scanner) passTo(what string, end, marks int) {
	if end < 0 {
		s.err = fmt.Errorf("line %d: a %s that does not end", s.line, what)
		return
	}
	s.pass(end + marks)
}

// endOfString is where the first quote without a backslash is; -1 if there is none.
func endOfString(text string) int {
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i
		}
	}
	return -1
}

// endOfHTML is where the < that text begins with is closed; -1 if it is not.
func endOfHTML(text string) int {
	depth := 0
	for i, c := range text {
		switch c {
		case '<':
			depth++
		case '>':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}
