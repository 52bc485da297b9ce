// An agent loop without a framework: a vendor's API, tools, and Ringi's gate. A
// conversation is a file, so that any process goes on.
import { appendFileSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { basename } from "node:path";
import { Gate } from "./glue.mjs";

const { RINGI_URL, RINGI_TOKEN, VENDOR, RAN, HANG } = process.env;

// The tool. key is for the payment provider: the same for the same call and bytes.
async function refund(text, key) {
  const given = JSON.parse(text);
  appendFileSync(RAN, `refund ${text}\n`);
  if (HANG) await new Promise((go) => setTimeout(go, 3_600_000));
  return { output: `refunded ${given.amount}` };
}

async function ask(messages, tools) {
  const body = JSON.stringify({ model: "m", messages, tools: tools.map((t) => ({ type: "function", function: t })) });
  const res = await fetch(`${VENDOR}/chat/completions`, { method: "POST", headers: { "Content-Type": "application/json" }, body });
  return (await res.json()).choices[0].message;
}

const path = process.argv[2];
const messages = JSON.parse(readFileSync(path, "utf8"));
const gate = new Gate(RINGI_URL, RINGI_TOKEN, { agent: "shop", conversation: basename(path) });
const [, offer] = await gate.send("GET", "/v1/tools?agent=shop");
const tools = offer.tools.filter((t) => t.external).map((t) => ({ name: t.name, description: t.description ?? "", parameters: t.input_schema }));
for (;;) {
  const answers = [], waiting = [];
  for (const [i, c] of (messages.at(-1).tool_calls ?? []).entries()) {
    const call = { tool: c.function.name, input: c.function.arguments, model_id: c.id };
    const now = await gate.do(`${basename(path)}-${messages.length}-${i}`, call, refund);
    if (now.approval) waiting.push(now.approval.id);
    answers.push({ role: "tool", tool_call_id: c.id, content: now.result?.text ?? "" });
  }
  if (waiting.length) {
    console.log("waiting", ...waiting);
    break;
  }
  messages.push(...answers);
  if (messages.at(-1).role === "assistant") {
    console.log("done", messages.at(-1).content);
    break;
  }
  messages.push(await ask(messages, tools));
  writeFileSync(`${path}.${process.pid}`, JSON.stringify(messages));
  renameSync(`${path}.${process.pid}`, path);
}
