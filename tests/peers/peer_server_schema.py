"""Schemathesis against `panpan serve`: no request makes it fail, and every response is as its description says."""

import re
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest

from tests.capabilities.mcp.place import Place
from tests.faces.server.served import TOKEN, server_process
from tests.peers.scratch_python import scratch_python

SECONDS = 30
HOOKS = """
import os, random, schemathesis

@schemathesis.hook
def map_path_parameters(context, path_parameters):
    if path_parameters and "session" in path_parameters and random.random() < 0.8:
        return {**path_parameters, "session": os.environ["SESSION"]}
    return path_parameters
"""
"""Most requests are about a session that is there."""
CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "negative_data_rejection",
    "unsupported_method",
)


def test_server_keeps_to_its_description(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    version = f"3.{sys.version_info.minor}"
    python = scratch_python(tmp_path_factory, "schemathesis", version, ["schemathesis>=4.32,<5"])
    place = Place(tmp_path.resolve())
    (tmp_path / "hooks.py").write_text(HOOKS)
    header = f"Authorization: Bearer {TOKEN}"
    with server_process(place) as (_, url):
        opened = httpx2.post(f"{url}/v1/sessions", json={}, headers=dict([header.split(": ")]), timeout=60).json()
        done = subprocess.run(
            [
                str(python.with_name("schemathesis")),
                *("run", f"{url}/doc", "-H", header, "--checks", ",".join(CHECKS)),
                *("--exclude-path-regex", "events|wait", "--exclude-operation-id", "sessions.close"),  # they take time
                *("--phases", "examples,coverage,fuzzing", "-n", "10", "--max-time", str(SECONDS), "--no-color"),
            ],
            cwd=tmp_path,
            env={"PATH": "/usr/bin:/bin", "SCHEMATHESIS_HOOKS": "hooks", "SESSION": opened["session"]["id"]},
            capture_output=True,
            text=True,
            check=False,
        )

    assert done.returncode == 0, done.stdout[-5_000:] + done.stderr[-1_000:]
    tested = re.search(r"Tested: (\d+)", done.stdout)
    assert tested is not None
    assert int(tested[1]) >= 20, "a slow machine does not get to all of them"
