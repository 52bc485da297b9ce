// Package notify reaches people: it tells who may decide that requests wait, by
// mail, web push or ntfy.
//
// A notice says that something waits, for which agent, how risky, until when,
// and where. It never says what: no tool's name, no argument, no word of a model
// or of a policy (S-34). Whoever wants to know follows the link and logs in.
//
// A [Dispatcher] finds new requests in the store, asks the directory who may
// decide them, and sends one notice a run to each, at the time that the person
// has set: at once, as a digest, and not within quiet hours unless a request
// would expire in them. What is owed and what was sent is in a database of its
// own, written before and after each sending: a crash loses none and sends at
// most one twice. Channels do not wait for each other, and no run waits for any
// of them.
package notify
