package providertest_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ringi-dev/ringi/internal/npmtest"
)

// reference is what the vendors publish of their APIs in a form that a machine
// reads: the types of their own packages for TypeScript, which their SDKs for Go
// share nothing with. Gemini's are those of the REST body's members: its SDK
// takes them apart otherwise. One member is in none of them, and is sent to no
// server but those that sent it: the reasoning_content of servers that speak
// OpenAI's API.
const reference = `import type OpenAI from "openai";
import type Anthropic from "@anthropic-ai/sdk";
import type { Content, FunctionCallingConfig, GenerationConfig, Tool } from "@google/genai";
type Chat = Omit<OpenAI.Chat.ChatCompletionCreateParamsStreaming, "messages"> & { messages: (OpenAI.Chat.ChatCompletionMessageParam | Kept)[] };
type Kept = OpenAI.Chat.ChatCompletionAssistantMessageParam & { reasoning_content?: string };
type Responses = OpenAI.Responses.ResponseCreateParamsStreaming;
type Messages = Anthropic.MessageCreateParamsStreaming;
type Gemini = { contents: Content[]; systemInstruction?: Content; tools?: Tool[]; toolConfig?: { functionCallingConfig?: FunctionCallingConfig }; generationConfig?: GenerationConfig };
`

// Every golden body fits what its vendor publishes: no member is misspelt,
// missing, of another kind or in another place.
func TestGoldenBodiesFitTheVendorsTypes(t *testing.T) {
	dir := npmtest.Folder(t, filepath.Join("testdata", "reference"))
	var src strings.Builder
	src.WriteString(reference)
	bodies := map[string]int{}
	for pattern, kind := range map[string]string{
		"openai/testdata/*.chat.golden.json": "Chat", "openai/testdata/*.responses.golden.json": "Responses", "openai/testdata/hosted_*.golden.json": "Responses",
		"anthropic/testdata/*.messages.golden.json": "Messages", "gemini/testdata/*.golden.json": "Gemini",
	} {
		files, err := filepath.Glob(filepath.Join("..", filepath.FromSlash(pattern)))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: no golden files, %v", pattern, err)
		}
		for _, file := range files {
			for _, body := range goldens(t, file) {
				bodies[kind]++
				fmt.Fprintf(&src, "// %s\nexport const %s%d: %s = %s;\n", filepath.Base(file), strings.ToLower(kind), bodies[kind], kind, body)
			}
		}
	}
	if out, err := compile(t, dir, src.String()); err != nil {
		t.Errorf("%v\n%.4000s", err, out)
	}
	t.Logf("bodies: %v", bodies)
	// The types do refuse something.
	for _, wrong := range []string{
		`export const a: Chat = {"model":"m","stream":true,"messages":[{"role":"tool","content":"x"}]};`,
		`export const b: Responses = {"model":"m","stream":true,"input":[{"type":"function_call_output","callId":"c","output":"x"}]};`,
		`export const c: Messages = {"model":"m","stream":true,"max_tokens":1,"messages":[{"role":"user","content":[{"type":"tool_result","content":"x"}]}]};`,
		`export const d: Gemini = {"contents":[{"role":"user","parts":[{"function_response":{"name":"x"}}]}]};`,
	} {
		if out, err := compile(t, dir, reference+wrong); err == nil {
			t.Errorf("it takes %s\n%s", wrong, out)
		}
	}
}

// goldens reads the JSON documents of a file.
func goldens(t *testing.T, file string) []string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for dec := json.NewDecoder(bytes.NewReader(text)); ; {
		var body json.RawMessage
		if err := dec.Decode(&body); errors.Is(err, io.EOF) {
			return out
		} else if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		out = append(out, string(body))
	}
}

func compile(t *testing.T, dir, src string) (string, error) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, "bodies.ts"), []byte(src), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "node", filepath.Join("node_modules", "typescript", "bin", "tsc"), "--noEmit", "--strict", "--skipLibCheck",
		"--module", "nodenext", "--moduleResolution", "nodenext", "--target", "es2022", "--exactOptionalPropertyTypes", "bodies.ts")
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	return string(out), err
}
