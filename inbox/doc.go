// Package inbox is where people decide: pages in a browser over a
// [ringi.Service].
//
// Every page is rendered by the server and works without JavaScript. A small
// script adds live updates, keys and five seconds in which a decision can still
// be undone; it decides nothing that a form does not. What a decision carries is
// the digest of what its page showed, so a page that is out of date decides
// nothing.
//
// Text that models, tools and strangers wrote is shown through one escape, never
// as markup, link or heading. What a sentence or a chip says comes from the
// registered tool and the recorded request. Values that a schema marks as secret
// are masked, and so is what looks like one.
//
// The handler serves pages and nothing else. Host names, limits and headers are
// the mux's that it stands on: see access.Hosts, access.Limiter and
// access.Headers, whose content security policy the pages keep.
package inbox
