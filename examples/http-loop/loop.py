"""An agent loop without a framework: a vendor's API, tools, and Ringi's gate. A conversation is a file, so that any process goes on."""
import json
import os
import sys
import time
import urllib.request

from glue import Gate


def refund(text, key):
    """The tool. key is for the payment provider: the same for the same call and bytes."""
    given = json.loads(text)
    with open(os.environ["RAN"], "a") as log:
        log.write(f"refund {text}\n")
    if os.environ.get("HANG"):
        time.sleep(3600)
    return {"output": f"refunded {given['amount']}"}


def ask(messages, tools):
    body = {"model": "m", "messages": messages, "tools": [{"type": "function", "function": t} for t in tools]}
    req = urllib.request.Request(os.environ["VENDOR"] + "/chat/completions", json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(req) as res:
        return json.load(res)["choices"][0]["message"]


def main(path):
    with open(path) as f:
        messages = json.load(f)
    gate = Gate(os.environ["RINGI_URL"], os.environ["RINGI_TOKEN"], agent="shop", conversation=os.path.basename(path))
    offer = gate.send("GET", "/v1/tools?agent=shop")[1]["tools"]
    tools = [{"name": t["name"], "description": t.get("description", ""), "parameters": t["input_schema"]} for t in offer if t.get("external")]
    while True:
        answers, waiting = [], []
        for i, c in enumerate(messages[-1].get("tool_calls") or []):
            call = {"tool": c["function"]["name"], "input": c["function"]["arguments"], "model_id": c["id"]}
            now = gate.do(f"{os.path.basename(path)}-{len(messages)}-{i}", call, refund)
            waiting += [now["approval"]["id"]] if "approval" in now else []
            answers.append({"role": "tool", "tool_call_id": c["id"], "content": now.get("result", {}).get("text", "")})
        if waiting:
            print("waiting", *waiting)
            return
        messages += answers
        if messages[-1]["role"] == "assistant":
            print("done", messages[-1]["content"])
            return
        messages.append(ask(messages, tools))
        with open(f"{path}.{os.getpid()}", "w") as f:
            json.dump(messages, f)
        os.replace(f.name, path)


main(sys.argv[1])
