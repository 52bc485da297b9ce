package main

import (
	"strings"
)

// Where a command finds its server, and the token that it shows there.
const (
	serverEnv = "RINGI_SERVER"
	tokenEnv  = "RINGI_TOKEN"
)

// serverAddress is the server that is meant; "" where a store is. What was typed
// counts before the environment, and two that are alike are an error: nobody
// decides at the wrong one.
func (e *env) serverAddress() (string, error) {
	store, server := e.getenv("RINGI_STORE"), e.getenv(serverEnv)
	switch {
	case e.server != "" && e.store != "":
		return "", usagef("--server and --store: say one of them")
	case e.server != "":
		return e.server, nil
	case e.store != "":
		return "", nil
	case server != "" && store != "":
		return "", usagef("%s and RINGI_STORE are both set: say --server or --store", serverEnv)
	}
	return server, nil
}

// token reads the token from the file of --token-file, which nobody else may
// read, or from RINGI_TOKEN. It is never an argument: everybody on the machine
// sees those (S-10).
func (e *env) token() (string, error) {
	if e.tokenFile == "" {
		if t := e.getenv(tokenEnv); t != "" {
			return t, nil
		}
		return "", usagef("no token: set %s, or name a file with --token-file; `ringi token create` makes one", tokenEnv)
	}
	b, err := readGuarded(e.tokenFile, onlyOursRead)
	if err != nil {
		return "", err
	}
	t := strings.TrimSpace(string(b))
	if t == "" || strings.ContainsAny(t, " \t\r\n") {
		return "", usagef("%s does not hold one token", e.tokenFile)
	}
	return t, nil
}
