// Package webhook tells other systems what happens to requests and runs, as
// Standard Webhooks (standardwebhooks.com) says: a signed POST, thin, at least
// once.
//
// An [Outbox] follows the feed of the store. What an endpoint is to be told is
// written into a table in the transaction that also moves the endpoint's place in
// the feed; so nothing is lost while the server is down, and nothing is written
// twice. From the table it is sent until the receiver says 2xx, and kept as a
// dead letter when the tries are used up. A process that is killed between a send
// and its record sends again, under the same webhook-id: receivers drop what they
// have seen.
//
// Nothing of what a tool is called with, nor of what it answered, leaves by this
// way (S-24, S-34): a body holds ids, states and an address to look at.
package webhook
