package main

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/engine"
)

// agentConfig is one agent of the configuration.
type agentConfig struct {
	Name       string      `yaml:"name"`
	System     string      `yaml:"system"`
	SystemFile string      `yaml:"system_file"`
	Model      modelConfig `yaml:"model"`
	Zone       string      `yaml:"zone"`
	Tools      struct {
		Set      string   `yaml:"set"`
		File     string   `yaml:"file"`
		External string   `yaml:"external"`
		Foreign  bool     `yaml:"foreign"`
		Names    []string `yaml:"names"`
	} `yaml:"tools"`
	Groups          []string               `yaml:"groups"`
	Limits          limitsConfig           `yaml:"limits"`
	Floor           map[string]floorConfig `yaml:"floor"`
	RequireApproval []string               `yaml:"require_approval"`
	Deciders        struct {
		People []string `yaml:"people"`
		Teams  []string `yaml:"teams"`
	} `yaml:"deciders"`
	FourEyes  string       `yaml:"four_eyes"`
	Initiator string       `yaml:"initiator"`
	Expiry    duration     `yaml:"expiry"`
	UseBy     duration     `yaml:"use_by"`
	Remind    remindConfig `yaml:"remind"`
	Then      string       `yaml:"then"`
}

// limitsConfig are ringi.Limits as the file says them.
type limitsConfig struct {
	Steps        whole    `yaml:"steps"`
	ToolCalls    whole    `yaml:"tool_calls"`
	CallsPerTurn whole    `yaml:"calls_per_turn"`
	ToolTimeout  duration `yaml:"tool_timeout"`
	InputBytes   whole    `yaml:"input_bytes"`
	InputDepth   whole    `yaml:"input_depth"`
	ResultBytes  whole    `yaml:"result_bytes"`
	OpenRequests whole    `yaml:"open_requests"`
	ThreadAsks   whole    `yaml:"thread_requests"`
	AgentAsks    whole    `yaml:"agent_requests"`
	SameDenied   whole    `yaml:"same_denied"`
	Denied       whole    `yaml:"denied"`
	Attempts     whole    `yaml:"attempts"`
	ModelRetries whole    `yaml:"model_retries"`
	Reads        whole    `yaml:"reads"`
}

// limits are the same for the engine; what is not said is the default.
func (l limitsConfig) limits() ringi.Limits {
	return ringi.Limits{
		Steps: int(l.Steps), ToolCalls: int(l.ToolCalls), CallsPerTurn: int(l.CallsPerTurn), ToolTimeout: l.ToolTimeout.d,
		InputBytes: int(l.InputBytes), InputDepth: int(l.InputDepth), ResultBytes: int(l.ResultBytes),
		OpenRequests: int(l.OpenRequests), SameDenied: int(l.SameDenied), Denied: int(l.Denied),
		Attempts: int(l.Attempts), ModelRetries: int(l.ModelRetries), Reads: int(l.Reads),
	}
}

// agentKey is a row of the table of an agent's keys, for docs/config.md.
type agentKey struct{ key, def, what string }

// agentKeys is the one table of an agent's keys; a test holds it against
// agentConfig.
var agentKeys = slices.Concat([]agentKey{
	{"name", "needed", "the agent's name, in lists, log and API: letters, digits, `.`, `_` and `-`"},
	{"system", "empty", "the system prompt"},
	{"system_file", "none", "a file with the system prompt, in place of `system`"},
}, modelKeys, []agentKey{
	{"zone", "needed", "the trust zone that the model runs in: `local`, `private_hosted`, `external_eu` or `external_global`"},
	{"tools.set", "none", "a set of tools that is built in: `backoffice`, that of `ringi demo`, or `shop`, the small shop of `ringi try`"},
	{"tools.file", "none", "a file of tool definitions, a JSON array, in place of `set`; each declares its effect. With a scripted model they answer what is recorded"},
	{"tools.external", "none", "a file of tool definitions, a JSON array (`name`, `description`, `input_schema`, `effect`, `data_class`, `allow_edit`, `timeout` and so on): tools that a foreign loop runs, after `POST /v1/calls` let it"},
	{"tools.foreign", "false", "takes calls of tools that nobody registered from agents' clients, by `POST /v1/calls`: each asks a person, and is shown as `ext:client/tool`. Its class is `secret_adjacent`, so that the zone must be `local`"},
	{"tools.names", "all of them", "the tools of the set or file that the agent has. One that it could never be offered is an error"},
	{"groups", "all", "the tool groups that the agent's runs have"},
	{"limits.steps", "10", "model calls of a run"},
	{"limits.tool_calls", "50", "tool calls of a run"},
	{"limits.calls_per_turn", "50", "calls that are judged of one turn"},
	{"limits.tool_timeout", "30s", "time of a call"},
	{"limits.input_bytes", "1048576", "bytes of a call's input"},
	{"limits.input_depth", "64", "depth of a call's input"},
	{"limits.result_bytes", "1048576", "bytes of a result; the rest is cut and marked"},
	{"limits.open_requests", "20", "requests that wait at once in a run"},
	{"limits.thread_requests", "30", "requests of a thread within an hour; a call above it is denied, and nobody is asked"},
	{"limits.agent_requests", "none", "requests that wait at once in all runs of the agent; a call above it is denied, and nobody is asked"},
	{"limits.same_denied", "3", "denials of the same call, until it is not asked again"},
	{"limits.denied", "10", "denials by people in a thread, until the run ends"},
	{"limits.attempts", "3", "attempts without progress, until the run is given up"},
	{"limits.model_retries", "2", "further tries of a model call that failed"},
	{"limits.reads", "8", "reads that run at once"},
	{"floor", "empty", "by tool: the least that holds, `user-approval` or `denied`, or an object with `type` and `reason`. The approval rule is always part of the floor: nothing waves a write through"},
	{"require_approval", "none", "tools whose every call asks a person, reading ones too"},
	{"deciders.people", "every approver", "the ids of people who may decide"},
	{"deciders.teams", "every approver", "teams whose members may decide"},
	{"four_eyes", "off; `writes` with a provider", "`writes` or `all`: whom the run comes from may not approve it, whichever login he takes. It needs `login.oidc`, and no login links"},
	{"initiator", "none", "`may_approve` lets who asked for a run approve it. With a provider nothing else does (S-04)"},
	{"expiry", "72h", "how long a request waits, or `never`"},
	{"use_by", "24h", "how long an approval is good"},
	{"remind", "none", "after how long its deciders are reminded, once: less than `expiry`, or a share of it such as `50%`"},
	{"then", "none", "the team that a request is handed to when nobody has decided as long again after the reminder, or three fifths of the time that was left at it, whichever is less (with `50%`: at 80 % of the expiry). It need not be among `deciders`; a tool's own rule is not widened. Needs `remind`"},
})

var agentName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

func (c *config) checkAgents() error {
	seen := map[string]bool{}
	for i := range c.Agents {
		a := &c.Agents[i]
		err := a.check()
		if err == nil && seen[strings.ToLower(a.Name)] {
			err = errors.New("name: another agent has it")
		}
		if err != nil {
			return fmt.Errorf("agents[%d] (%s): %w", i, a.Name, err)
		}
		seen[strings.ToLower(a.Name)] = true
	}
	return nil
}

// check refuses an agent that makes no sense. Whether its tools exist, and may
// be offered, shows when they are opened.
func (a *agentConfig) check() error {
	switch {
	case !agentName.MatchString(a.Name):
		return fmt.Errorf("name: %q is not 1 to 64 letters, digits, dots, underscores and hyphens", a.Name)
	case a.System != "" && a.SystemFile != "":
		return errors.New("system and system_file: say one of them")
	case !ringi.TrustZone(a.Zone).Known():
		return fmt.Errorf("zone: unknown value %q: say local, private_hosted, external_eu or external_global", a.Zone)
	case a.Tools.Set != "" && a.Tools.File != "":
		return errors.New("tools: say set or file")
	case a.Tools.Set == "" && a.Tools.File == "" && a.Tools.External == "" && len(a.Tools.Names) > 0:
		return errors.New("tools.names: of which set or file?")
	}
	for _, check := range []func() error{a.checkModel, a.checkExternal, a.checkPolicy, a.checkTimes} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func (a *agentConfig) checkPolicy() error {
	for tool, f := range a.Floor {
		if s := ringi.Status(f.Type); s != ringi.UserApproval && s != ringi.Denied {
			return fmt.Errorf("floor: %s: %q is no floor: say user-approval or denied", tool, f.Type)
		}
	}
	if !slices.Contains([]string{"", "off", string(engine.FourEyesWrites), string(engine.FourEyesAll)}, a.FourEyes) {
		return fmt.Errorf("four_eyes: unknown value %q: say off, writes or all", a.FourEyes)
	}
	for key, names := range map[string][]string{"groups": a.Groups, "require_approval": a.RequireApproval, "tools.names": a.Tools.Names,
		"deciders.people": a.Deciders.People, "deciders.teams": a.Deciders.Teams} {
		if slices.Contains(names, "") {
			return fmt.Errorf("%s: one of them is empty", key)
		}
		if names != nil && len(names) == 0 && key != "groups" {
			return fmt.Errorf("%s: an empty list says nothing: leave it out", key)
		}
	}
	return nil
}

func (a *agentConfig) checkTimes() error {
	switch expiry := a.Expiry.orNever(); {
	case a.UseBy.never || a.Remind.never || a.Limits.ToolTimeout.never:
		return errors.New("use_by, remind and limits.tool_timeout have an end: never is for expiry alone")
	case a.Remind.percent > 0 && expiry < 0:
		return errors.New("remind: a share of which time? The expiry is never")
	case a.Then != "" && !a.Remind.set():
		return errors.New("then: after which time? Set remind")
	case expiry == 0 && a.Remind.d >= defaultExpiry, expiry > 0 && a.Remind.d >= expiry:
		return errors.New("remind: it is not before the expiry")
	}
	return nil
}

// defaultExpiry is the engine's.
const defaultExpiry = 72 * time.Hour
