// Package backoffice is the demo agent: the back office of a small shop over a
// real SQLite database, its tools, and a scripted model that works with them.
//
// Customers, orders and texts are made up here, the same in every new
// database. The tools really change it: what a person approves is booked,
// mailed to the outbox or cancelled, and can be looked up afterwards.
//
// The model is a script in a model's place. What it does next follows from the
// messages that it is sent and from nothing else, so a run goes on in another
// process as if it had never stopped. It says what became of each call: run,
// changed, answered by a person, denied and why, expired, or unknown.
//
// It is for demonstration. No bank and no mail server is ever spoken to.
package backoffice
