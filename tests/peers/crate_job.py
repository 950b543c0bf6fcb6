"""Reads a crate as others do: the validator of RO-Crate, offline from a cache with one context, and runcrate.

Called with the crate, a file with the context of RO-Crate 1.1, and a folder for the cache. It prints a JSON object.
"""

import io
import json
import subprocess
import sys
from pathlib import Path

import requests
from requests_cache import CachedSession
from rocrate.rocrate import ROCrate
from urllib3 import HTTPResponse

CONTEXT = "https://w3id.org/ro/crate/1.1/context"
ACCEPT = "application/ld+json, application/json, */*;q=0.1"


def fill_cache(path: Path, context: bytes) -> None:
    """Keep the context as if it had been fetched from its address."""
    answer = requests.Response()
    answer.status_code, answer.url = 200, CONTEXT
    answer.headers["Content-Type"] = "application/ld+json"
    answer._content = context
    answer.raw = HTTPResponse(io.BytesIO(context), status=200, headers=answer.headers, preload_content=False)
    answer.request = requests.Request("GET", CONTEXT, headers={"Accept": ACCEPT}).prepare()
    CachedSession(cache_name=str(path), backend="sqlite", expire_after=-1).cache.save_response(answer)


def validated(crate: str, cache: Path) -> dict:
    program = Path(sys.executable).with_name("rocrate-validator")
    report = cache.with_name("report.json")
    words = ["validate", "-p", "process-run-crate-0.5", "-l", "recommended", "--offline", "--cache-path", str(cache)]
    argv = [str(program), "-y", "--disable-color", *words, "-f", "json", "-o", str(report), crate]
    subprocess.run(argv, capture_output=True, check=False)
    return json.loads(report.read_text())


def requirements(read: ROCrate) -> list:
    """Return the software that the first run needs beside its sources."""
    run = next(one for one in read.contextual_entities if one.type == "CreateAction")
    return run["instrument"].get("softwareRequirements", [])


def main() -> None:
    crate, context, folder = sys.argv[1:]
    cache = Path(folder) / "cache"
    fill_cache(cache, Path(context).read_bytes())
    report = validated(crate, cache)
    runcrate = Path(sys.executable).with_name("runcrate")
    told = subprocess.run([str(runcrate), "report", crate], capture_output=True, text=True, check=True).stdout
    read = ROCrate(crate)
    found = {
        "profile": report["validation_settings"]["profile_identifier"],
        "checks": report["statistics"]["total_checks"],
        "issues": [[one["severity"], one["message"]] for one in report["issues"]],
        "actions": [line.partition(": ")[2] for line in told.splitlines() if line.startswith("action: ")],
        "instruments": [line.partition(": ")[2] for line in told.splitlines() if "instrument: " in line],
        "requirements": [f"{one['name']} {one['softwareVersion']}" for one in requirements(read)],
        "name": read.name,
        "files": sorted(one.id for one in read.data_entities if one.type == "File"),
    }
    sys.stdout.write(json.dumps(found))


main()
