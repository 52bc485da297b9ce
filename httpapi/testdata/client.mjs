// Node's standard library against the API: start a run, approve what waits, and
// follow the run's log to its end. Arguments: address, starter's token,
// decider's token.
const [url, starter, decider] = process.argv.slice(2);

async function call(token, method, path, body, headers = {}) {
  const res = await fetch(url + path, {
    method,
    headers: { authorization: `Bearer ${token}`, ...(body && { "content-type": "application/json" }), ...headers },
    body: body && JSON.stringify(body),
  });
  const answer = await res.json();
  if (!res.ok) throw new Error(`${answer.type}: ${answer.title}`);
  return [answer, res.headers.get("etag")];
}

const [run] = await call(starter, "POST", "/v1/runs?wait=20s", { agent: "shop", text: "refund 5" }, { "idempotency-key": crypto.randomUUID() });
const id = run.pending[0].id;
const [request, etag] = await call(decider, "GET", `/v1/approvals/${id}`);
await call(decider, "POST", `/v1/approvals/${id}/decisions`, { digest: request.digest, answer: "approve" }, { "if-match": etag });

const events = await fetch(`${url}/v1/runs/${run.run_id}/events`, { headers: { authorization: `Bearer ${starter}`, accept: "text/event-stream" } });
let text = "";
for await (const chunk of events.body.pipeThrough(new TextDecoderStream())) text += chunk;
const kinds = text.split("\n").filter((l) => l.startsWith("event: ")).map((l) => l.slice(7));
const [ended] = await call(starter, "GET", `/v1/runs/${run.run_id}`);
console.log(kinds.at(0), kinds.at(-1), ended.status);

try {
  await call(decider, "POST", `/v1/approvals/${id}/decisions`, { digest: request.digest, answer: "deny" }, { "if-match": etag });
} catch (e) {
  console.log(e.message);
}
