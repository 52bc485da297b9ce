package deps

import (
	_ "github.com/creack/pty"
	_ "github.com/go-json-experiment/json"
	_ "github.com/google/jsonschema-go/jsonschema"
	_ "github.com/rogpeppe/go-internal/testscript"
	_ "github.com/santhosh-tekuri/jsonschema/v6"
	_ "github.com/spf13/cobra"
	_ "golang.org/x/term"
	_ "modernc.org/sqlite"
	_ "pgregory.net/rapid"
)
