package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// chatConfig says to whom agents are served as chats.
type chatConfig struct {
	Serve      string   `yaml:"serve"`
	AGUI       string   `yaml:"agui"`
	Origins    []string `yaml:"origins"`
	Show       string   `yaml:"show"`
	NewMessage string   `yaml:"new_message"`
	Identity   struct {
		Issuer   string `yaml:"issuer"`
		JWKS     string `yaml:"jwks"`
		Audience string `yaml:"audience"`
		Teams    string `yaml:"teams"`
	} `yaml:"identity"`
}

// chatSettings are the rows of chat.
var chatSettings = []setting{
	{"chat.serve", "chat-serve", "off", "`on`: the agents are served to pages with the AI SDK's useChat at `/v1/chat/AGENT`; see docs/chat.md",
		textAt(func(c *config) *string { return &c.Chat.Serve })},
	{"chat.agui", "chat-agui", "off", "`on`: the agents are served to clients of AG-UI at `/v1/agui/AGENT`; see docs/agui.md",
		textAt(func(c *config) *string { return &c.Chat.AGUI })},
	{"chat.origins", "chat-origins", "none", "pages of other origins that may chat (`https://shop.example`), comma separated in variable and flag",
		listAt(func(c *config) *[]string { return &c.Chat.Origins })},
	{"chat.show", "chat-show", "waits", "what a chat's user sees of his runs' calls that he may not decide: `waits`, that something waits and how it ended; or `all`, inputs and results too (S-28)",
		textAt(func(c *config) *string { return &c.Chat.Show })},
	{"chat.new_message", "chat-new-message", "refuse", "what a new message does while a request waits: `refuse`; or `withdraw`, which ends that run",
		textAt(func(c *config) *string { return &c.Chat.NewMessage })},
	{"chat.identity.issuer", "chat-identity-issuer", "none", "whose tokens (JWT) say who a chat's user is; without it users of this server chat, with its own logins and tokens",
		textAt(func(c *config) *string { return &c.Chat.Identity.Issuer })},
	{"chat.identity.jwks", "chat-identity-jwks", "none", "where the issuer's public keys are: `https://shop.example/.well-known/jwks.json`",
		textAt(func(c *config) *string { return &c.Chat.Identity.JWKS })},
	{"chat.identity.audience", "chat-identity-audience", "none", "the audience that the tokens name",
		textAt(func(c *config) *string { return &c.Chat.Identity.Audience })},
	{"chat.identity.teams", "chat-identity-teams", "none", "the claim that lists the user's teams",
		textAt(func(c *config) *string { return &c.Chat.Identity.Teams })},
}

// checkChat refuses a chat whose users nobody knows.
func (c *config) checkChat() error {
	chat := &c.Chat
	for _, one := range []struct {
		key   string
		value *string
		known []string // the first is the default
	}{
		{"chat.serve", &chat.Serve, []string{"off", "on"}},
		{"chat.agui", &chat.AGUI, []string{"off", "on"}},
		{"chat.show", &chat.Show, []string{"waits", "all"}},
		{"chat.new_message", &chat.NewMessage, []string{"refuse", "withdraw"}},
	} {
		if *one.value == "" {
			*one.value = one.known[0]
		}
		if !slices.Contains(one.known, *one.value) {
			return fmt.Errorf("%s: unknown value %q: say %s", one.key, *one.value, strings.Join(one.known, ", "))
		}
	}
	id := chat.Identity
	some := id.Issuer != "" || id.JWKS != "" || id.Audience != "" || id.Teams != ""
	if some && (id.Issuer == "" || id.JWKS == "" || id.Audience == "") {
		return errors.New("chat.identity: issuer, jwks and audience belong together")
	}
	if chat.Serve == "off" && chat.AGUI == "off" && (some || len(chat.Origins) > 0) {
		return errors.New("chat: it is set up and not served: set chat.serve: on, or chat.agui: on")
	}
	return nil
}
