// The gate of `ringi serve`: may this call run, now run it once, this came of it.
const again = ["in-flight", "busy", "conflict", "stopping"];

export class Gate {
  constructor(url, token, run) { // run: agent and conversation
    Object.assign(this, { url, token, run });
  }

  async send(method, path, body, key) {
    const headers = { Authorization: `Bearer ${this.token}`, "Content-Type": "application/json" };
    if (key) headers["Idempotency-Key"] = key;
    for (let i = 0; i < 600; i++) { // whatever is sent may be sent again
      try {
        const res = await fetch(this.url + path, { method, headers, body: body && JSON.stringify(body) });
        const said = await res.json();
        if (res.ok || !again.includes(said.type.split(":").pop())) return [res.status, said];
      } catch {} // the server restarts
      await new Promise((go) => setTimeout(go, 100));
    }
    throw new Error(`no answer at ${path}`);
  }

  // Runs a call once where it may. The answer's result is what the model reads;
  // without one a person is asked.
  async do(key, call, run) {
    let [status, now] = await this.send("POST", "/v1/calls", { ...this.run, ...call }, key);
    if (status >= 400) throw new Error(JSON.stringify(now));
    const path = `/v1/calls/${now.id}`;
    if (now.state === "run") {
      const [status, mine] = await this.send("POST", `${path}/start`, {});
      if (status === 200) { // ours alone
        const came = await run(mine.input, mine.idempotency_key);
        await this.send("POST", `${path}/result`, { attempt: mine.attempt, ...came });
      }
      [, now] = await this.send("GET", path);
    }
    return now.state === "running" ? (await this.send("GET", `${path}?wait=60s`))[1] : now;
  }
}
