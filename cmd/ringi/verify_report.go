package main

import (
	"fmt"
	"strings"
)

// verifyReport is what ringi verify found, and its JSON.
type verifyReport struct {
	Store string `json:"store"`
	// Spaces are those that were looked into.
	Spaces []string `json:"spaces"`
	// Keyed is set for a store that has used a key, Signed where signatures
	// were checked with it.
	Keyed  bool `json:"keyed"`
	Signed bool `json:"signed"`
	// What was checked. Erased counts payloads that were removed by record:
	// their chain is whole.
	Runs      int `json:"runs"`
	Records   int `json:"records"`
	Erased    int `json:"erased"`
	Requests  int `json:"requests"`
	Decisions int `json:"decisions"`
	// Broken is what is not as it was written; Unproven what holds together,
	// and is signed with a key that is not here; Unchecked what could not be
	// read.
	Broken    []finding `json:"broken"`
	Unproven  []finding `json:"unproven"`
	Unchecked []finding `json:"unchecked"`
	Proves    string    `json:"proves"`
}

// finding is one thing that is wrong, and where.
type finding struct {
	Space string `json:"space"`
	RunID string `json:"run_id"`
	Why   string `json:"why"`
}

// print writes the report.
func (v *verifier) print() error {
	r := &v.report
	proves := v.proves()
	if v.e.json {
		r.Proves = strings.ReplaceAll(proves, "\n", " ")
		return v.e.printJSON(r)
	}
	p := v.e.paints(v.e.out)
	for _, part := range []struct {
		word  plain
		found []finding
	}{{p.in(red, "BROKEN"), r.Broken}, {p.in(yellow, "NOT PROVEN"), r.Unproven}, {p.in(yellow, "NOT CHECKED"), r.Unchecked}} {
		for _, f := range part.found {
			p.put("%s %s: %s\n", part.word, r.where(f), f.Why)
		}
	}
	p.put("Checked in %s of store %s: %s, %s, %s, %s.\n", r.spaces(), r.Store, plain(count(r.Runs, "run")),
		plain(count(r.Records, "record")), plain(count(r.Requests, "request")), plain(count(r.Decisions, "decision")))
	if r.Erased > 0 {
		p.put("Payloads of %s were erased, and a record says so; the chain holds without them.\n", plain(count(r.Erased, "record")))
	}
	p.put("%s\n", plain(proves))
	return p.flush(v.e.out)
}

// where names a run, and its space where there are several.
func (r *verifyReport) where(f finding) string {
	if len(r.Spaces) < 2 {
		return f.RunID
	}
	return f.RunID + " in space " + f.Space
}

// spaces names one space, and counts several.
func (r *verifyReport) spaces() string {
	switch len(r.Spaces) {
	case 0:
		return "no space"
	case 1:
		return "space " + r.Spaces[0]
	}
	return "all " + count(len(r.Spaces), "space")
}

// proves says what was shown, and what was not.
func (v *verifier) proves() string {
	const not = "\nNot shown: that no run was taken away whole, and that the file is not an older copy\nof itself. That needs an anchor outside the store."
	switch r := v.report; {
	case len(r.Broken) > 0 && r.Signed && !r.Keyed:
		return "Something is not as it was written, or this store was never keyed: then say --without-key."
	case len(r.Broken) > 0:
		return "Something is not as it was written: nothing of a broken run is decided or executed."
	case len(r.Unproven) > 0:
		return "What was checked is as it was written. Of what is not proven the chain holds, and\nwhether a holder of its key wrote it is not shown."
	case len(r.Unchecked) > 0:
		return "What was checked is as it was written; the rest could not be read."
	case r.Runs == 0:
		return "There is no run here, so nothing is shown."
	case r.Signed:
		return "Every record is as a holder of the key wrote it, none is missing, and every request\nand decision is signed." + not
	}
	return "Every record follows from the one before it, and none is missing. Signatures were not\nchecked: whoever can write to the file could have written it all anew." + not
}

// verdict is the error that gives the exit code. What is broken counts before
// what could not be checked, so that no cut looks like a failure to run (F171).
func (v *verifier) verdict() error {
	switch r := v.report; {
	case len(r.Broken) > 0:
		return unprovenf("verification failed: %s, first: run %s: %s", findings(len(r.Broken)), r.where(r.Broken[0]), r.Broken[0].Why)
	case len(r.Unproven) > 0:
		return fmt.Errorf("could not authenticate %s, first: run %s: %s", count(len(r.Unproven), "run"), r.where(r.Unproven[0]), r.Unproven[0].Why)
	case len(r.Unchecked) > 0:
		return fmt.Errorf("could not check %s, first: run %s: %s", findings(len(r.Unchecked)), r.where(r.Unchecked[0]), r.Unchecked[0].Why)
	}
	return v.noKey
}

func findings(n int) string { return count(n, "finding") }
