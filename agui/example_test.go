package agui_test

import (
	"context"
	"log"
	"net/http"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/agui"
	"github.com/ringi-dev/ringi/engine"
	"github.com/ringi-dev/ringi/live"
)

// An agent with one gated tool, over AG-UI. A program's own login takes the place
// of Who; a model of package provider that of model.
func Example() {
	type refund struct {
		Order string `json:"order"`
		Cents int    `json:"cents"`
	}
	tools := ringi.NewRegistry()
	ringi.MustAddTool(tools, ringi.Tool{Name: "refund", Description: "Refund an order.", Effect: ringi.NonIdempotentWrite},
		func(ctx context.Context, in refund) (string, error) { return "refunded " + in.Order, nil })

	var feed live.Feed
	var model ringi.Model
	agent, err := engine.New(engine.Config{Agent: "support", Model: model, Registry: tools, Live: feed.Publish})
	if err != nil {
		log.Fatal(err)
	}
	h, err := agui.New(agui.Options{
		Service: agent, Resume: agent.Resume, Feed: &feed, Agent: "support", Open: true,
		Who: func(r *http.Request) (ringi.Principal, error) {
			return ringi.Principal{ID: "demo", Name: "You", Kind: ringi.Person, Auth: "demo"}, nil
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	http.Handle("/api/agui/", http.StripPrefix("/api/agui", h))
	http.Handle("/api/agui", http.StripPrefix("/api/agui", h))
}
