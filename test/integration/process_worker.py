"""process_worker - processes in code: claims and reports over HTTP, and workers in Python, of examples/python-process."""
import os
import sys

from pawl_test import Process, setting

sys.path.insert(0, os.path.join(setting("PAWL_SOURCE"), "examples", "python-process"))
import process as process_module  # noqa: E402

ORDER = os.path.join(setting("PAWL_SOURCE"), "examples", "python-process", "order.py")


def post(pawl, path, body, status=200):
    answer = pawl.http("POST", path, body=body, headers={"Content-Type": "application/json"})
    assert answer.status == status, (answer.status, answer.body)
    return answer.json


def claim(pawl, domain="shop", types=("py-order",), **more):
    return post(pawl, f"/v1/process-domains/{domain}/claim", {"types": list(types), "wait_s": 60, **more})["items"]


def report(pawl, item, domain="shop", status=200, **parts):
    answer = post(pawl, f"/v1/process-domains/{domain}/report",
                  {"items": [{"process_id": item["process_id"], "lease": item["lease"], **parts}]}, status)
    return answer["items"][0] if status == 200 else answer


def show(pawl, process_id):
    return pawl.http("GET", f"/v1/processes/{process_id}").json


def order_worker(pawl, domain, effects, crash_at=None, lease_s=60):
    environment = {**os.environ, "PAWL_URL": f"http://{pawl.server.host}:{pawl.server.port}", "PAWL_TOKEN": pawl.TOKEN, "EFFECTS": effects, "LEASE_S": str(lease_s), "WAIT_S": "5"}
    if crash_at:
        environment["CRASH_AT"] = str(crash_at)
    worker = Process([sys.executable, ORDER, domain], env=environment)
    pawl.processes.append(worker)
    return worker


def module_worker(pawl, domain, functions):
    """A worker in this program, of which the test decides when it takes its turn."""
    return process_module.Worker(domain, functions, f"http://{pawl.server.host}:{pawl.server.port}", pawl.TOKEN, wait=60.0)
