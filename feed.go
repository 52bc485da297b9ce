package ringi

import "context"

// FeedRow says where a record stands among those of all runs of a store.
type FeedRow struct {
	// N rises with every record, in the order of the commits, and is never given
	// twice.
	N            int64
	Space, RunID string
	Seq          int64
	Kind         EventKind
}

// Feed lists the records of all runs in the order in which they were committed:
// who keeps the last number that he has worked on misses nothing and looks at
// nothing twice. It holds no payloads, and it is not checked: read the run's
// events, which are. A store may have a Feed or not; one that has it gives rows
// out only once nothing can be committed before them any more.
type Feed interface {
	// Feed lists the rows behind a number, of every space, at most limit of them
	// (0: 100; at most 1,000). 0 begins.
	Feed(ctx context.Context, after int64, limit int) ([]FeedRow, error)
	// FeedEnd returns the number of the newest record; 0 where there is none.
	FeedEnd(ctx context.Context) (int64, error)
}
