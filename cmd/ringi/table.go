package main

import (
	"fmt"
	"strings"
)

// table is rows of cells, the first row being the heading.
type table [][]any

// lay lays the cells out in columns, escaped.
func (t table) lay() plain {
	wide := make([]int, len(t[0]))
	cells := make([][]string, len(t))
	for i, row := range t {
		cells[i] = make([]string, len(row))
		for j, c := range row {
			cells[i][j] = fmt.Sprint(escapedOne(c))
			wide[j] = max(wide[j], columns(cells[i][j]))
		}
	}
	var b strings.Builder
	for _, row := range cells {
		for j, c := range row {
			b.WriteString(c)
			if j < len(row)-1 {
				b.WriteString(strings.Repeat(" ", wide[j]-columns(c)+2))
			}
		}
		b.WriteByte('\n')
	}
	return plain(b.String())
}
