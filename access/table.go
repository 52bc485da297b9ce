package access

import (
	"strings"
)

// Table prints the table of rights as Markdown: a row a route, a column a role.
func Table() string {
	var b strings.Builder
	b.WriteString("| route | token's scope |")
	for _, role := range Roles() {
		b.WriteString(" " + string(role) + " |")
	}
	b.WriteString("\n|---|---|" + strings.Repeat("---|", len(Roles())) + "\n")
	for _, line := range rights {
		b.WriteString("| `" + string(line.route) + "` | `" + string(line.scope) + "` |")
		for _, role := range Roles() {
			b.WriteString(" " + cell(line, role) + " |")
		}
		b.WriteString("\n")
	}
	return b.String()
}

func cell(line right, role Role) string {
	var words []string
	for _, o := range owners {
		if line.may[role]&o.owner != 0 {
			words = append(words, o.name)
		}
	}
	switch {
	case len(words) == 0:
		return "–"
	case line.granted:
		words = append(words, "where granted")
	}
	return strings.Join(words, ", ")
}
