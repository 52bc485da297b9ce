package audit_test

import (
	"fmt"
	"time"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/audit"
)

// A run's records are appended to its chain, and found again as they were, or
// not at all.
func Example() {
	by := ringi.Principal{ID: "os:1000@host", Name: "Anna"}
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	records, chain, err := audit.Genesis("store", "default", "run_1").Append(nil, at, 1,
		&ringi.RunStarted{Thread: "thr_1", By: by},
		&ringi.ApprovalDecided{Request: "req_1", Answer: ringi.Deny, By: by, Reason: "not today", At: at},
	)
	if err != nil {
		fmt.Println(err)
		return
	}

	events, err := audit.Events("store", "default", "run_1", records, chain.Head, chain.Seq)
	for _, e := range events {
		fmt.Println(e.Seq, e.Kind)
	}
	fmt.Println("whole:", err)

	records[1].Payload = []byte(`{"request":"req_1","answer":"approve"}`)
	fmt.Println(audit.VerifyRun("store", "default", "run_1", records, chain.Head, chain.Seq))
	// Output:
	// 1 run_started
	// 2 approval_decided
	// whole: <nil>
	// records 1 to 1 are as they were written; broken at record 2: its payload and random bytes are not those that the header commits to
}
