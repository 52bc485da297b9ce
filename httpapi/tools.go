package httpapi

import (
	"context"
	"net/http"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/access"
)

// Agents are those that runs are started for.
type Agents struct {
	Agents []ringi.AgentInfo `json:"agents"`
}

func (s *server) listAgents(ctx context.Context, w access.Who, _ *struct{}) (*answer, error) {
	if err := access.May(w, access.ToolsRead, every); err != nil {
		return nil, err
	}
	agents, err := s.Service.Agents(ctx)
	if err != nil {
		return nil, err
	}
	out := Agents{Agents: []ringi.AgentInfo{}}
	for _, a := range agents {
		if access.May(w, access.ToolsRead, w.OwnerOf(access.Thing{Space: w.Space, Agent: a.Name})) == nil {
			out.Agents = append(out.Agents, a)
		}
	}
	return asJSON(http.StatusOK, out)
}

type toolsInput struct {
	Agent      string   `query:"agent" doc:"The agent; empty where there is one."`
	Groups     []string `query:"groups" doc:"Only these groups of tools."`
	Unattended string   `query:"unattended" enum:"per_tool,per_call"`
}

func (s *server) getTools(ctx context.Context, w access.Who, in *toolsInput) (*answer, error) {
	if err := access.May(w, access.ToolsRead, every); err != nil {
		return nil, err
	}
	agent, err := s.agent(ctx, w, in.Agent, access.ToolsRead)
	if err != nil {
		return nil, err
	}
	offer, err := s.Service.Offered(ctx, ringi.RunInfo{Space: w.Space, Agent: agent, By: w.Principal, Groups: in.Groups, Unattended: ringi.Unattended(in.Unattended)})
	if err != nil {
		return nil, err
	}
	if offer.Tools == nil {
		offer.Tools = []ringi.Tool{}
	}
	return asJSON(http.StatusOK, offer)
}

// WithheldTools says of each tool what it is to a caller without an approval
// step.
type WithheldTools struct {
	Withheld []ringi.Withheld `json:"withheld"`
}

type withheldInput struct {
	Agent string `query:"agent" doc:"The agent; empty where there is one."`
}

func (s *server) getUnattended(ctx context.Context, w access.Who, in *withheldInput) (*answer, error) {
	if err := access.May(w, access.ToolsRead, every); err != nil {
		return nil, err
	}
	agent, err := s.agent(ctx, w, in.Agent, access.ToolsRead)
	if err != nil {
		return nil, err
	}
	withheld, err := s.Service.Withheld(ctx, agent)
	if err != nil {
		return nil, err
	}
	if withheld == nil {
		withheld = []ringi.Withheld{}
	}
	return asJSON(http.StatusOK, WithheldTools{withheld})
}
