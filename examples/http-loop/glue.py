"""The gate of `ringi serve`: may this call run, now run it once, this came of it."""
import json
import time
import urllib.error
import urllib.request


class Gate:
    def __init__(self, url, token, **run):  # run: agent and conversation
        self.url, self.token, self.run = url, token, run

    def send(self, method, path, body=None, key=""):
        head = {"Authorization": "Bearer " + self.token, "Content-Type": "application/json"} | ({"Idempotency-Key": key} if key else {})
        data = None if method == "GET" else json.dumps(body).encode()
        for _ in range(600):  # whatever is sent may be sent again
            req = urllib.request.Request(self.url + path, data, head, method=method)
            try:
                with urllib.request.urlopen(req, timeout=90) as res:
                    return res.status, json.load(res)
            except urllib.error.HTTPError as err:
                problem = json.load(err)
                if problem["type"].split(":")[-1] not in ("in-flight", "busy", "conflict", "stopping"):
                    return err.code, problem
            except OSError:
                pass  # the server restarts
            time.sleep(0.1)
        raise TimeoutError(path)

    def do(self, key, call, run):
        """Runs a call once where it may. The answer's result is what the model reads; without one a person is asked."""
        now = self.send("POST", "/v1/calls", {**self.run, **call}, key)[1]
        path = "/v1/calls/" + now["id"]  # a refusal has no id
        if now["state"] == "run":
            status, mine = self.send("POST", path + "/start", {})
            if status == 200:  # ours alone
                came = run(mine["input"], mine["idempotency_key"])
                self.send("POST", path + "/result", {"attempt": mine["attempt"], **came})
            now = self.send("GET", path)[1]
        return self.send("GET", path + "?wait=60s")[1] if now["state"] == "running" else now
