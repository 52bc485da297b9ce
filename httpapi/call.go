package httpapi

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/access"
)

// The gate over HTTP, for loops in any language: may this call run, now run it
// once with these bytes, this came of it. Everything goes by the call's id, so
// that any process of the loop and of the server can go on (S-11).

// LoopCall is a call of a foreign loop as it stands.
type LoopCall struct {
	ID     string `json:"id"`
	RunID  string `json:"run_id"`
	Thread string `json:"thread"`
	Agent  string `json:"agent,omitempty"`
	// Tool is the name under which the call is judged and shown: "ext:client/tool"
	// for one that nobody registered. Foreign then names the client.
	Tool    string `json:"tool"`
	Foreign string `json:"foreign,omitempty"`
	ModelID string `json:"model_id,omitempty"`
	// State: "run" may be started; "waiting" waits for a person; "running" was
	// started; "refused" will not run, and "done" has run: the model reads the
	// result of both.
	State   ringi.CallState `json:"state" enum:"run,waiting,running,refused,done"`
	Verdict ringi.Verdict   `json:"verdict"`
	// Approval is what waits for a person.
	Approval *CallApproval `json:"approval,omitempty"`
	Result   *CallResult   `json:"result,omitempty"`
	// Attempt counts the starts, StartedAt is the time of the newest.
	Attempt   int       `json:"attempt,omitempty"`
	StartedAt time.Time `json:"started_at,omitzero"`
}

// CallApproval is the approval that a call waits for.
type CallApproval struct {
	ID string `json:"id"`
	// URL is where it is followed.
	URL       string            `json:"url"`
	Kind      ringi.RequestKind `json:"kind"`
	ExpiresAt time.Time         `json:"expires_at,omitzero"`
}

// CallResult is what the model reads of a call.
type CallResult struct {
	// Text is what to hand to the model.
	Text    string            `json:"text"`
	Outcome ringi.CallOutcome `json:"outcome"`
	Code    ringi.ResultCode  `json:"code,omitempty"`
	// Origin is "person" where a person answered in the tool's place.
	Origin    ringi.Origin `json:"origin,omitempty"`
	Truncated bool         `json:"truncated,omitempty"`
}

// ClaimedCall is the right to run a call once: it is given to one caller.
type ClaimedCall struct {
	ID    string `json:"id"`
	RunID string `json:"run_id"`
	Tool  string `json:"tool"`
	// Input is the text of the JSON to run, byte for byte; SHA256 is its digest in
	// hex.
	Input  string `json:"input"`
	SHA256 string `json:"input_sha256"`
	// Key is for the outside system that the tool calls: the same for the same
	// call and bytes, another for any other.
	Key string `json:"idempotency_key"`
	// Attempt goes back with the result.
	Attempt   int       `json:"attempt"`
	StartedAt time.Time `json:"started_at"`
	// Until is when the call counts as given up: a person is then asked what
	// became of it.
	Until time.Time `json:"until,omitzero"`
}

func callOf(c ringi.GateCall) LoopCall {
	out := LoopCall{ID: c.Call.ID, RunID: c.RunID, Thread: c.Thread, Agent: c.Agent, Tool: c.Call.Tool, ModelID: c.Call.ModelID, State: c.State,
		Verdict: c.Verdict, Attempt: c.Attempt, StartedAt: c.StartedAt}
	out.Foreign, _, _ = ringi.Foreign(c.Call.Tool)
	if r := c.Request; r != nil {
		out.Approval = &CallApproval{ID: r.ID, URL: "/v1/approvals/" + r.ID, Kind: r.Kind, ExpiresAt: r.ExpiresAt}
	}
	if r := c.Result; r != nil {
		out.Result = &CallResult{Text: r.Text(), Outcome: r.Outcome, Code: r.Code, Origin: r.Origin, Truncated: r.Truncated}
	}
	return out
}

// callRoutes registers the operations on calls.
func (s *server) callRoutes() {
	post(s, "/v1/calls", "judge-call", "Judge a call of a foreign loop", LoopCall{}, 201, handle(s, s.postCall))
	get(s, "/v1/calls/{id}", "get-call", "A call as it stands", LoopCall{}, handle(s, s.getCall))
	post(s, "/v1/calls/{id}/start", "start-call", "Get the right to run a call, once", ClaimedCall{}, 200, handle(s, s.postCallStart))
	post(s, "/v1/calls/{id}/result", "finish-call", "Say what came of a call", LoopCall{}, 200, handle(s, s.postCallResult))
	post(s, "/v1/runs/{id}/close", "close-run", "End a foreign loop's run, completed", Run{}, 200, handle(s, s.postClose))
}

// CallBody is a call that a loop's model asks for.
type CallBody struct {
	Agent  string `json:"agent,omitempty" doc:"The agent; empty where there is one."`
	RunID  string `json:"run_id,omitempty" doc:"A run of your calls to go on with. Without run_id and thread a run begins."`
	Thread string `json:"thread,omitempty" doc:"A thread of your own to go on with."`
	// Conversation stands in place of both for a loop that keeps no ids of ours.
	Conversation string `json:"conversation,omitempty" maxLength:"200" doc:"A name of your own, in place of run_id and thread: calls under the same name share an open run."`
	Tool         string `json:"tool" minLength:"1" maxLength:"128" doc:"A tool that the agent registers as external, or a name of your own, which is shown as ext:client/tool."`
	Input        string `json:"input" doc:"The text of the call's arguments, byte for byte as the model wrote it: a string, not an object."`
	// ModelID is kept to answer the model.
	ModelID string       `json:"model_id,omitempty" maxLength:"512" doc:"The model's own id of the call."`
	Zone    string       `json:"zone,omitempty" enum:"local,private_hosted,external_eu,external_global" doc:"The trust zone of the loop's model; the less trusted of it and the agent's counts."`
	Claim   *ringi.Claim `json:"claim,omitempty" doc:"What you say of the call: shown to people as unchecked."`
}

type callInput struct {
	Wait    string `query:"wait" doc:"Wait while the call waits for a person, at most 60s." example:"20s"`
	Key     string `header:"Idempotency-Key" doc:"The same key in the same run is the same call, for as long as the run is open."`
	Body    CallBody
	RawBody []byte
}

func (s *server) postCall(ctx context.Context, w access.Who, in *callInput) (*answer, error) {
	if in.Wait != "" {
		if _, err := parseWait(in.Wait); err != nil {
			return nil, err
		}
	}
	start, v, err := s.callStart(ctx, w, in.Key, in.Body)
	if err != nil {
		return nil, err
	}
	var now ringi.GateCall
	a, err := s.once(ctx, w, v, access.CallsMake, in.Key, in.RawBody, func(bool) (*answer, error) {
		now, err = s.Service.JudgeCall(ctx, start) // a repeat finds its call by the key
		if err != nil {
			return nil, s.hidden(w, access.CallsMake, err)
		}
		a, err := asJSON(http.StatusCreated, callOf(now))
		if err == nil {
			a.location = "/v1/calls/" + now.Call.ID
		}
		return a, err
	})
	if err != nil || !a.replayed && in.Wait == "" {
		return a, err
	}
	// What was answered then may have changed.
	b, err := s.callAsItStands(ctx, w, a.location[len("/v1/calls/"):], in.Wait)
	if err != nil {
		return nil, err
	}
	a.body = b.body
	return a, nil
}

// callStart is the call that a body asks for, of an agent, a run and a thread
// that w may use.
func (s *server) callStart(ctx context.Context, w access.Who, key string, b CallBody) (ringi.CallStart, seen, error) {
	out := ringi.CallStart{RunID: b.RunID, Thread: b.Thread, By: w.Principal, Zone: ringi.TrustZone(b.Zone), Tool: b.Tool, Input: ringi.Input(b.Input),
		ModelID: b.ModelID, Claim: b.Claim}
	if err := access.May(w, access.CallsMake, access.Own); err != nil {
		return out, seen{}, err
	}
	if key != "" {
		out.Ref = derived("ringi-call-ref-v1", w.Principal.ID, key)
	}
	var v seen
	var err error
	switch {
	case b.Conversation != "" && b.RunID+b.Thread != "":
		return out, v, fmt.Errorf("%w: say conversation, or run_id and thread", errUnread)
	case b.Conversation != "":
		out.Thread = "thr_" + derived("ringi-call-conversation-v1", w.Principal.ID, b.Agent+"\n"+b.Conversation)
	case b.RunID != "":
		if v, err = s.run(ctx, w, b.RunID, access.CallsMake); err == nil && b.Agent != "" && b.Agent != v.agent {
			err = fmt.Errorf("%w: the run is another agent's", errUnread)
		}
		return out, v, err
	case b.Thread != "":
		if v, err = s.thread(ctx, w, b.Thread, access.CallsMake); err != nil {
			return out, v, err
		}
	case key != "":
		out.Thread = "thr_" + derived("ringi-call-thread-v1", w.Principal.ID, key)
	}
	if out.Agent, err = s.agent(ctx, w, b.Agent, access.CallsMake); err != nil {
		return out, v, err
	}
	if v.agent == "" {
		v = seen{place: place{agent: out.Agent}, owner: access.Own}
	}
	return out, v, nil
}

// derived is a name that follows from texts.
func derived(label, principal, key string) string {
	sum := sha256.Sum256([]byte(label + "\n" + principal + "\n" + key))
	return hex.EncodeToString(sum[:16])
}

type callID struct {
	ID   string `path:"id" doc:"The call's id."`
	Wait string `query:"wait" doc:"Wait while the call waits for a person or runs, at most 60s." example:"20s"`
}

func (s *server) getCall(ctx context.Context, w access.Who, in *callID) (*answer, error) {
	return s.callAsItStands(ctx, w, in.ID, in.Wait)
}

// ownCall finds a call that w made.
func (s *server) ownCall(ctx context.Context, w access.Who, id string) (ringi.GateCall, seen, error) {
	var none ringi.GateCall
	if err := access.May(w, access.CallsMake, every); err != nil {
		return none, seen{}, err
	}
	c, err := s.Service.Call(ctx, id)
	if err != nil {
		return none, seen{}, s.hidden(w, access.CallsMake, err)
	}
	v, err := s.run(ctx, w, c.RunID, access.CallsMake)
	return c, v, err
}

// callAsItStands answers with a call, once it waits for nothing more, or for
// something else, or the time is over.
func (s *server) callAsItStands(ctx context.Context, w access.Who, id, wait string) (*answer, error) {
	c, _, err := s.ownCall(ctx, w, id)
	if err != nil {
		return nil, err
	}
	if wait != "" {
		first, seq := c.State, int64(-1)
		err = s.poll(ctx, w, wait, func(ctx context.Context, w access.Who) (bool, error) {
			row, err := s.Service.Row(ctx, c.RunID)
			if err != nil || row.Seq == seq {
				return false, err
			}
			seq = row.Seq
			now, _, err := s.ownCall(ctx, w, id)
			if err != nil {
				return false, err
			}
			c = now
			return c.State != first || c.State != ringi.CallWaits && c.State != ringi.CallRunning, nil
		})
		if err != nil {
			return nil, err
		}
	}
	return asJSON(http.StatusOK, callOf(c))
}

// StartCallBody says nothing yet.
type StartCallBody struct{}

type callStartInput struct {
	ID      string `path:"id"`
	Key     string `header:"Idempotency-Key" doc:"A repeat is refused: the right to run is given once."`
	Body    StartCallBody
	RawBody []byte
}

// postCallStart gives the right to run a call. A repeat with the same key does
// not get it again: a loop that died in between would run the call twice.
func (s *server) postCallStart(ctx context.Context, w access.Who, in *callStartInput) (*answer, error) {
	_, v, err := s.ownCall(ctx, w, in.ID)
	if err != nil {
		return nil, err
	}
	return s.once(ctx, w, v, access.CallsMake, in.Key, in.RawBody, func(bool) (*answer, error) {
		c, err := s.Service.StartCall(ctx, in.ID)
		if err != nil {
			return nil, err
		}
		sum := sha256.Sum256([]byte(c.Call.Input))
		a, err := asJSON(http.StatusOK, ClaimedCall{ID: c.Call.ID, RunID: c.RunID, Tool: c.Call.Tool, Input: string(c.Call.Input), SHA256: hex.EncodeToString(sum[:]),
			Key: c.Key, Attempt: c.Attempt, StartedAt: c.StartedAt, Until: c.Until})
		if err == nil {
			a.secret = true
		}
		return a, err
	})
}

// ResultBody is what came of a call: output, error, or neither for a tool that
// says nothing.
type ResultBody struct {
	Attempt int    `json:"attempt" minimum:"1" doc:"The attempt of the start."`
	Output  string `json:"output,omitempty" doc:"What the tool answered, byte for byte: the model reads it."`
	Error   string `json:"error,omitempty" doc:"The tool's own error: the model reads it."`
	NotDone bool   `json:"not_done,omitempty" doc:"With error: surely nothing happened."`
	Unknown bool   `json:"unknown,omitempty" doc:"Nobody knows whether it ran: a person is asked. With output, what there is."`
}

type resultInput struct {
	ID      string `path:"id"`
	Key     string `header:"Idempotency-Key"`
	Body    ResultBody
	RawBody []byte
}

func (s *server) postCallResult(ctx context.Context, w access.Who, in *resultInput) (*answer, error) {
	_, v, err := s.ownCall(ctx, w, in.ID)
	if err != nil {
		return nil, err
	}
	r := ringi.ToolResult{Output: in.Body.Output, Error: in.Body.Error}
	switch b := in.Body; {
	case b.Output != "" && b.Error != "", b.NotDone && (b.Unknown || b.Output != ""), b.Unknown && b.Error != "":
		return nil, fmt.Errorf("%w: say output, or error (with not_done where nothing happened), or unknown", errUnread)
	case b.Unknown:
		r.Outcome = ringi.OutcomeInDoubt
	case b.NotDone:
		r.Code = ringi.CodeNotDone
	}
	return s.once(ctx, w, v, access.CallsMake, in.Key, in.RawBody, func(again bool) (*answer, error) {
		c, err := s.Service.FinishCall(ctx, in.ID, in.Body.Attempt, r)
		if has := (*ringi.ResultError)(nil); again && errors.As(err, &has) {
			c, err = s.Service.Call(ctx, in.ID) // the first try recorded it
		}
		if err != nil {
			return nil, err
		}
		return asJSON(http.StatusOK, callOf(c))
	})
}

// CloseBody says nothing yet.
type CloseBody struct{}

type closeInput struct {
	ID      string `path:"id"`
	Key     string `header:"Idempotency-Key"`
	Body    CloseBody
	RawBody []byte
}

func (s *server) postClose(ctx context.Context, w access.Who, in *closeInput) (*answer, error) {
	v, err := s.run(ctx, w, in.ID, access.CallsMake)
	if err != nil {
		return nil, err
	}
	return s.once(ctx, w, v, access.CallsMake, in.Key, in.RawBody, func(bool) (*answer, error) {
		if err := s.Service.CloseCalls(ctx, in.ID); err != nil {
			return nil, s.hidden(w, access.CallsMake, err)
		}
		row, err := s.Service.Row(ctx, in.ID)
		if err != nil {
			return nil, err
		}
		return asJSON(http.StatusOK, rowOf(row))
	})
}
