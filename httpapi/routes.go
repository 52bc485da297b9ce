package httpapi

import (
	"context"
	"net/http"
	"reflect"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/internal/sight"
)

// routes registers every operation.
func (s *server) routes() {
	get(s, "/v1/agents", "list-agents", "List the agents", Agents{}, handle(s, s.listAgents))
	get(s, "/v1/tools", "get-tools", "What a run of an agent is offered, and refused", ringi.Offer{}, handle(s, s.getTools))
	get(s, "/v1/tools/unattended", "get-unattended", "What each tool is to a caller without an approval step", WithheldTools{}, handle(s, s.getUnattended))
	get(s, "/v1/threads/{id}/messages", "get-messages", "The messages of a thread", Messages{}, handle(s, s.getMessages))

	post(s, "/v1/runs", "start-run", "Start a run", Run{}, 201, handle(s, s.postRun))
	get(s, "/v1/runs", "list-runs", "List runs, newest first", Runs{}, handle(s, s.listRuns))
	get(s, "/v1/runs/{id}", "get-run", "A run as it stands", Run{}, handle(s, s.getRun))
	get(s, "/v1/runs/{id}/events", "get-events", "A run's log, as JSON or as a stream", Events{}, s.getEvents, streams)
	post(s, "/v1/runs/{id}/cancel", "cancel-run", "End a run", Run{}, 200, handle(s, s.postCancel))
	get(s, "/v1/runs/{id}/verification", "verify-run", "Check a run's log", Verification{}, handle(s, s.getVerification))

	get(s, "/v1/approvals", "list-approvals", "List approvals, oldest first", Approvals{}, handle(s, s.listApprovals))
	get(s, "/v1/approval-count", "count-approvals", "Count approvals: those that you are asked, or asked for; an admin all. A token that is not for all agents names one", Count{}, handle(s, s.getCount))
	get(s, "/v1/approval-tally", "tally-approvals", "What became of approvals between two times, of those that you may count", Tally{}, handle(s, s.getTally))
	get(s, "/v1/approvals/{id}", "get-approval", "One approval", sight.Request{}, handle(s, s.getApproval), notModified)
	post(s, "/v1/approvals/{id}/decisions", "decide", "Answer an approval", Settled{}, 201, handle(s, s.postDecision))
	post(s, "/v1/approvals/{id}/take-back", "take-back", "Take an approval back until it is spent", Settled{}, 200, handle(s, s.postTakeBack))
	post(s, "/v1/approvals/{id}/withdrawal", "withdraw", "Withdraw what you asked for", Settled{}, 200, handle(s, s.postWithdrawal))
	post(s, "/v1/approvals/{id}/reassignment", "reassign", "Hand an approval over", Settled{}, 200, handle(s, s.postReassignment))
	post(s, "/v1/approvals/{id}/extension", "extend", "Give an approval more time", Settled{}, 200, handle(s, s.postExtension))
	post(s, "/v1/approvals/{id}/presence", "look-at", "Say that you have an approval before you, and see who else has", Looking{}, 200, handle(s, s.postPresence))
	post(s, "/v1/approvals/{id}/reveal", "reveal", "Show masked values in clear, which is recorded", Revealed{}, 200, handle(s, s.postReveal))
	post(s, "/v1/approval-batches", "decide-batch", "Answer up to 50 approvals, each by itself", BatchResults{}, 200, handle(s, s.postBatch))

	get(s, "/v1/me", "get-me", "Who you are, and what you may do", Me{}, handle(s, s.getMe))
	get(s, "/v1/tokens", "list-tokens", "List tokens: never the tokens themselves", Tokens{}, handle(s, s.listTokens))
	post(s, "/v1/tokens", "create-token", "Make a token, and show it once", NewToken{}, 201, handle(s, s.postToken))
	post(s, "/v1/tokens/{id}/revoke", "revoke-token", "End a token at once", Done{}, 200, handle(s, s.postRevoke))
	get(s, "/v1/users", "list-users", "List who may log in", Users{}, handle(s, s.listUsers))
	post(s, "/v1/users", "add-user", "Add a person who may log in", User{}, 201, handle(s, s.postUser))
	post(s, "/v1/users/{id}", "change-user", "Change what a person may do", User{}, 200, handle(s, s.postUserChange))
	post(s, "/v1/users/{id}/disable", "disable-user", "End a person's sessions, and refuse his tokens", User{}, 200, handle(s, s.postDisable))
	get(s, "/v1/teams", "list-teams", "List teams and who is in them", Teams{}, handle(s, s.listTeams))
	post(s, "/v1/teams", "add-team", "Add a team", Team{}, 201, handle(s, s.postTeam))
	post(s, "/v1/teams/{id}/remove", "remove-team", "Remove a team; its people stay", Done{}, 200, handle(s, s.postRemoveTeam))
	s.callRoutes()

	get(s, "/v1/events", "follow-inbox", "What changes among approvals, as a stream of hints", Change{}, s.getInbox, onlyStreams)
	s.api.OpenAPI().AddOperation(&huma.Operation{OperationID: "get-openapi", Method: http.MethodGet, Path: "/v1/openapi.json", Summary: "This document",
		Security:  []map[string][]string{{}},
		Responses: map[string]*huma.Response{"200": {Description: "An OpenAPI 3.1 document", Content: map[string]*huma.MediaType{"application/vnd.oai.openapi+json;version=3.1": {}}}}})
}

// problems are the statuses with which an operation may be refused; docs/errors.md
// says when.
func problems(method, path string) []int {
	out := []int{400, 401, 403, 404, 405, 422, 429, 500, 503} // 404: of agents and threads that are named too
	if method == http.MethodPost {
		out = append(out, 408, 409, 413, 415)
	}
	if strings.Contains(path, "events") {
		out = append(out, 406)
	}
	switch path {
	case "/v1/approvals/{id}/decisions":
		out = append(out, 410, 412, 428)
	case "/v1/calls/{id}/start", "/v1/calls/{id}/result":
		out = append(out, 410)
	case "/v1/approvals/{id}/take-back", "/v1/approvals/{id}/withdrawal", "/v1/approvals/{id}/reassignment", "/v1/approvals/{id}/extension":
		out = append(out, 410, 412)
	}
	return out
}

// operation describes what answers with a value like out, or a problem.
func operation(s *server, method, path, id, summary string, status int, out any) huma.Operation {
	registry := s.api.OpenAPI().Components.Schemas
	op := huma.Operation{
		OperationID: id, Method: method, Path: path, Summary: summary, DefaultStatus: status, MaxBodyBytes: MaxBody + 1, BodyReadTimeout: bodyTime,
		Responses: map[string]*huma.Response{
			itoa(status): {Description: http.StatusText(status), Content: map[string]*huma.MediaType{
				"application/json": {Schema: registry.Schema(reflect.TypeOf(out), true, "")}}},
		},
	}
	problem := map[string]*huma.MediaType{"application/problem+json": {Schema: registry.Schema(reflect.TypeFor[Problem](), true, "")}}
	op.Responses["default"] = &huma.Response{Description: "A problem", Content: problem}
	for _, status := range problems(method, path) {
		op.Responses[itoa(status)] = &huma.Response{Description: http.StatusText(status), Content: problem}
	}
	return op
}

func get[In any](s *server, path, id, summary string, out any, f handler[In], change ...func(*huma.Operation)) {
	op := operation(s, http.MethodGet, path, id, summary, http.StatusOK, out)
	for _, c := range change {
		c(&op)
	}
	huma.Register(s.api, op, f)
}

func post[In any](s *server, path, id, summary string, out any, status int, f handler[In]) {
	op := operation(s, http.MethodPost, path, id, summary, status, out)
	if status == http.StatusCreated { // a repeat is answered so
		op.Responses["200"] = &huma.Response{Description: "It was done already", Content: op.Responses["201"].Content}
	}
	huma.Register(s.api, op, f)
}

type handler[In any] = func(ctx context.Context, in *In) (*output, error)

// streams adds the stream to an answer.
func streams(op *huma.Operation) {
	op.Responses["200"].Content["text/event-stream"] = &huma.MediaType{Schema: &huma.Schema{Type: "string"}}
}

// onlyStreams makes the answer a stream whose events carry the value.
func onlyStreams(op *huma.Operation) {
	streams(op)
	delete(op.Responses["200"].Content, "application/json")
	op.Responses["200"].Description = "Events: approval, with a Change as its data; reset, where changes may have been missed"
}

func notModified(op *huma.Operation) {
	op.Responses["304"] = &huma.Response{Description: "The version is the one of If-None-Match"}
}
