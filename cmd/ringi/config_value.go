package main

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
)

// The scalars of the configuration, each as strict as it can be: the library
// would read 1.5 as 1.

// whole is a whole number above zero.
type whole int

// UnmarshalYAML takes an integer and nothing else.
func (c *whole) UnmarshalYAML(n ast.Node) error {
	i, ok := n.(*ast.IntegerNode)
	if !ok {
		return wrong(n, "this is to be a whole number")
	}
	return placed(n, c.parse(fmt.Sprint(i.Value)))
}

func (c *whole) parse(text string) error {
	v, err := strconv.ParseInt(text, 10, 32)
	if err != nil || v <= 0 {
		return fmt.Errorf("%q is not a whole number from 1 to %d", text, math.MaxInt32)
	}
	*c = whole(v)
	return nil
}

// duration is a time span; never where there is no end.
type duration struct {
	d     time.Duration
	never bool
}

// UnmarshalYAML takes a text such as 72h, or never.
func (d *duration) UnmarshalYAML(n ast.Node) error {
	s, ok := n.(*ast.StringNode)
	if !ok {
		return wrong(n, "this is to be a time span such as 30s or 72h")
	}
	return placed(n, d.parse(s.Value))
}

func (d *duration) parse(text string) error {
	if text == "never" {
		*d = duration{never: true}
		return nil
	}
	v, err := time.ParseDuration(text)
	if err != nil {
		return fmt.Errorf("%q is not a time span such as 30s or 72h", text)
	}
	if v <= 0 {
		return fmt.Errorf("%s is not above zero", text)
	}
	*d = duration{d: v}
	return nil
}

// orNever is the span, -1 for never, or 0 where nothing is said.
func (d duration) orNever() time.Duration {
	if d.never {
		return -1
	}
	return d.d
}

// floorConfig is the floor of one tool: a status, or a status with a reason.
type floorConfig struct {
	Type   string `yaml:"type"`
	Reason string `yaml:"reason"`
}

// UnmarshalYAML takes both forms.
func (f *floorConfig) UnmarshalYAML(n ast.Node) error {
	if s, ok := n.(*ast.StringNode); ok {
		*f = floorConfig{Type: s.Value}
		return nil
	}
	type plain floorConfig
	var p plain
	if err := yaml.NodeToValue(n, &p, yaml.Strict()); err != nil {
		return err
	}
	*f = floorConfig(p)
	return nil
}

// wrong is an error with its place.
func wrong(n ast.Node, format string, args ...any) error {
	return &yaml.SyntaxError{Message: fmt.Sprintf(format, args...), Token: n.GetToken()}
}

// placed gives an error the place of a node.
func placed(n ast.Node, err error) error {
	if err == nil {
		return nil
	}
	return wrong(n, "%s", err)
}
