// Package storetest holds every implementation of [ringi.Store] to the same
// promises. [Exercise] runs all of them, one function a noun; [Benchmark]
// measures the two calls that decide a run's speed; [Thief] is raw access to
// what is stored, for tests of what a changed byte does.
//
// The interface says what each method is for. This page settles what two
// implementations could read differently; each sentence is tested.
//
// # Order of checks in Commit
//
// The first that fails is returned, and nothing is written: no row, record,
// request, change, tool or wake-up.
//
//  1. A context that has ended gives its error.
//  2. Shape, a plain error: Space and RunID are there; Expect is not negative;
//     records are numbered
//     Expect+1 and on; a claim names an owner; a claim is no settler's; a
//     settler names no owner, does not claim, release, progress or make a run,
//     writes only kinds that settle and never gives the status running; a
//     change is not both Live and Past and goes only where the table of
//     [ringi.RequestState] goes; the first commit has records, a thread and a
//     status.
//  3. The run: Expect 0 and the run exists gives ErrConflict; Expect above 0
//     and it does not exist gives ErrNotFound.
//  4. A run marked corrupt takes no records and no claim: ErrCorrupt.
//  5. The lease: a claim that meets another living owner gives ErrBusy; a
//     claim whose owner has no living heartbeat (it never beat, or too long
//     ago) gives ErrLeaseLost; any other commit that is no settler's and whose
//     Owner and Epoch are not the row's, or whose Owner is empty, gives
//     ErrLeaseLost. The first commit needs no lease: it is queued without an
//     Owner, or claims. With an Owner and no claim it gives ErrLeaseLost.
//  6. ErrConflict where the row's Seq is not Expect, or a claim's Epoch is not
//     the row's.
//  7. ErrClock where the newest recorded time is more than two minutes ahead
//     of the wall clock, and the commit claims, or has a change that is Live or
//     Past or goes to approved, denied or spent.
//  8. An ended run stays ended. Of an owner: ErrFinal for another status than
//     the row's. Of a settler: the status is ignored. A settler that gives a
//     final status to a run that has not ended gives a plain error: only an
//     owner ends a run.
//  9. ErrRunOpen for a first commit on a thread of the space that has a run
//     which has not ended. A first commit with a final status is no open run.
//     Then ErrConflict where the commit's Follows is neither empty nor the run
//     that the thread was given last (ringi.NoRun: it has none).
//  10. New requests, then changes in their order, each seeing those before it.
//     A new request names the run's own Space, RunID and Thread and an id that
//     the space does not have: a plain error otherwise. A change of a request
//     that is not this run's gives ErrNotFound. One whose state is not From
//     gives *RequestStateError with the present state. Live at or past the
//     deadline, or Past before it, gives *RequestStateError with state and
//     deadline; a zero deadline never comes, so Live always holds and Past
//     never does (Deadline is then zero). The deadline of a pending request is
//     ExpiresAt, that of an approved one UseBy. 1 January 1970 is a deadline.
//
// # What a commit writes
//
// UpdatedAt is the store's Now, CreatedAt that of the first commit. Thread,
// Agent and Parent come from the first commit and never change. Head and MAC
// are taken where the commit has records.
//
// Status, Reason and Deadline go together: an empty Status keeps all three, and
// so does a settler's commit unless the run is queued or waiting and the status
// it gives is queued or waiting. A settler therefore gives the status that the
// run has if nobody runs it, also where it read running: its owner may have
// released it meanwhile, without a record, and a run whose last request is
// settled must not stay waiting. For a mark of corruption it gives none.
//
// Corrupt is set by a value and cleared by none; a settler may set it too. A
// claim raises the epoch by one and counts an attempt; Progress then sets the
// count to zero, also in the same commit. Release empties Owner and keeps the
// epoch, also in the commit that claims. A settler changes neither owner, epoch
// nor attempts. A change's zero DecidedAt, DecidedBy or UseBy keeps what is
// there. A tool that is known keeps its first definition.
//
// # Leases
//
// A heartbeat belongs to an owner, not to a run. Beat alone renews it: it lives
// until Now plus lease, and is dead at that very microsecond. A later Beat may
// shorten it; a lease of zero or less ends it. An owner whose heartbeat is dead
// and whose run nobody has taken may still commit: it never drops the result
// of a tool that ran.
//
// # Lists
//
// Transcript has the runs of a thread that have ended, in the order in which
// they were made, whatever their ids and clocks. Runs is the newest first in
// that order turned round. Runnable has the oldest first; a run is in it where
// it has not ended, is not corrupt, no living owner holds it, and it is queued,
// or running under an owner whose heartbeat is dead, or waiting with its
// Deadline reached. (A running run without an owner is a gate's between two
// calls: not listed.) Requests are ordered by CreatedAt, then id, or as
// [ringi.RequestQuery.Compare] says for another Order; [ringi.RequestQuery.Matcher]
// says which are among them, and RequestCount counts those, up to its limit. What
// Check refuses is refused with its error. After names a
// request, or a run, of the space, whatever its state is now and whatever else
// the query asks for; an unknown one gives ErrNotFound. Request and Requests
// show a pending request at or past its ExpiresAt as expired; the change still
// comes From pending. An unknown space, thread or run gives an empty list.
// Limits of zero or less are the default, above the maximum the maximum;
// Runnable's are those of Runs, RequestCount's 1,000 and 1,000. An empty list of
// People or Teams comes back as nil.
//
// # Bytes and times
//
// Bytes come back as they were, whatever is in them, and so do strings that are
// valid UTF-8 without NUL; others a store may refuse. A nil Payload
// or Salt is erased and stays apart from an empty one. Times come back in UTC,
// cut down to the microsecond; the zero time stays zero. What a store returns
// is the caller's: changing it changes nothing in the store.
//
// # An accepted clock
//
// AcceptClock is a plain error where ErrClock is not what a claim would get for
// its time. It sets the newest recorded time to the wall clock: UpdatedAt of a
// run that has a later one becomes it, and a heartbeat beyond lives for two
// minutes more. CreatedAt, requests and their deadlines stay, and are held
// against the accepted time from then on, in lists and in changes alike. What
// was recorded as expired stays expired. Every store that is open on the data
// heeds it at its next call. From there the store's time never goes back.
//
// # Ids and spaces
//
// Ids of runs, requests and threads belong to their space: the same id in two
// spaces names two things. What is another space's does not exist. Spaces lists
// each once, by its bytes; an attempt alone makes none.
//
// # Small things
//
// Attempts come oldest first, for any run id, known or not. RememberKey with
// another check value for a known id is an error and changes nothing.
// ForgetKey of the only key is a plain error and changes nothing. Close
// twice is no error; every other call after Close is one.
package storetest
