"""Python's standard library against the API: start a run, approve what waits,
and follow the run's log to its end. Arguments: address, starter's token,
decider's token."""

import json
import sys
import urllib.error
import urllib.request
import uuid

url, starter, decider = sys.argv[1:]


def send(token, method, path, body=None, **headers):
    request = urllib.request.Request(url + path, method=method, data=body and json.dumps(body).encode())
    request.add_header("Authorization", "Bearer " + token)
    if body:
        request.add_header("Content-Type", "application/json")
    for name, value in headers.items():
        request.add_header(name.replace("_", "-"), value)
    return urllib.request.urlopen(request, timeout=60)


def call(*args, **headers):
    with send(*args, **headers) as response:
        return json.load(response), response.headers.get("ETag")


run, _ = call(starter, "POST", "/v1/runs?wait=20s", {"agent": "shop", "text": "refund 5"}, Idempotency_Key=str(uuid.uuid4()))
approval = run["pending"][0]["id"]
request, etag = call(decider, "GET", "/v1/approvals/" + approval)
decision = {"digest": request["digest"], "answer": "approve"}
call(decider, "POST", f"/v1/approvals/{approval}/decisions", decision, If_Match=etag)

kinds = []
with send(starter, "GET", f"/v1/runs/{run['run_id']}/events", Accept="text/event-stream") as stream:
    for line in stream:
        if line.startswith(b"event: "):
            kinds.append(line[7:].decode().strip())
ended, _ = call(starter, "GET", "/v1/runs/" + run["run_id"])
print(kinds[0], kinds[-1], ended["status"])

try:
    decision["answer"] = "deny"
    call(decider, "POST", f"/v1/approvals/{approval}/decisions", decision, If_Match=etag)
except urllib.error.HTTPError as error:
    problem = json.load(error)
    print(problem["type"] + ": " + problem["title"])
