"""Well-known failures and the advice for each."""

import pytest

from panpan.capabilities.packages.conflict import KNOWN_FAILURES, advice_for, is_unreached

PRINTED = {
    "no space": "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device",
    "hash mismatch": "ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE.",
    "externally managed": "error: externally-managed-environment",
    "certificate": "SSLError(SSLCertVerificationError(1, '[SSL: CERTIFICATE_VERIFY_FAILED] failed'))",
    "network": "WARNING: Retrying after connection broken by 'NameResolutionError(...)'\n"
    "ERROR: Could not find a version that satisfies the requirement lamp (from versions: none)",
    "no ensurepip": "/work/.venv/bin/python3: No module named ensurepip",
    "no pip": "/work/.venv/bin/python: No module named pip",
    "no such Python": "error: No interpreter found for Python 3.6 in virtual environments or search path",
    "no compiler": "error: command 'x86_64-linux-gnu-gcc' failed: No such file or directory",
    "no header": "lamp.c:4:10: fatal error: Python.h: No such file or directory",
    "undeclared build dependency": "  ModuleNotFoundError: No module named 'torch'\n  [end of output]",
    "wrong Python": "ERROR: lamp-1.0-cp39-cp39-linux_x86_64.whl is not a supported wheel on this platform.",
    "stale lock": "error: The lockfile at `uv.lock` needs to be updated, but `--locked` was provided",
}


@pytest.mark.parametrize("known", KNOWN_FAILURES, ids=lambda known: known.name)
def test_known_failure_gets_its_advice(known: object) -> None:
    name, advice = known.name, known.advice

    assert advice_for(f"Collecting lamp\n{PRINTED[name]}\n") == advice


@pytest.mark.parametrize("printed", ["", "ERROR: No matching distribution found for lamp", "gcc --version\nok"])
def test_unknown_failure_gets_no_advice(printed: str) -> None:
    assert advice_for(printed) is None


@pytest.mark.parametrize(
    ("printed", "unreached"),
    [
        ("CondaHTTPError: HTTP 000 CONNECTION FAILED for url <https://c.example.org/x/repodata.json>", True),
        ("CondaHTTPError: HTTP 404 NOT FOUND for url <https://c.example.org/x/repodata.json>", False),
        ("error    libmamba Download error (6) Could not resolve hostname [https://c.example.org/x]", True),
        ("critical libmamba Download error (7) Couldn't connect to server [https://c.example.org/x]", True),
        ("PackagesNotFoundError: The following packages are not available from current channels:\n\n  - lamp", False),
    ],
)
def test_unreached_channel_is_told_from_a_missing_package(printed: str, unreached: bool) -> None:
    assert is_unreached(printed) is unreached
