"""Answers beside what real test runs have shown, through the installed command."""

import shlex
import sys
from collections.abc import Sequence

from tests.e2e.conftest import Panpan
from tests.model_server import RecordedRequest, call, say, serving

PYTEST = f"{shlex.quote(sys.executable)} -B -m pytest -q -p no:cacheprovider"
FAILING = "def test_one():\n    pass\n\ndef test_two():\n    assert 1 == 2\n"


def turn(panpan: Panpan, answer: str, command: str, *args: str) -> tuple[Sequence[RecordedRequest], dict[str, object]]:
    """Run a turn with one command, and return its requests and its result object."""
    with serving([call("Bash", {"command": command}), say(answer)]) as server:
        panpan.use(server)
        done = panpan.run("-p", "do it", "--yes", "-f", "json", *args)
    return server.requests, {**done.result, "stderr": done.stderr, "code": done.code}


def test_failure_in_a_pipe_is_told_against_the_answer(panpan: Panpan) -> None:
    (panpan.workspace / "test_a.py").write_text(FAILING)

    _, result = turn(panpan, "All tests pass. It works on GPU.", f"{PYTEST} | tail -1")

    found = result["verification"]
    assert isinstance(found, dict)
    assert (found["verified"], found["unverified"]) == ([], ["All tests pass", "works on GPU"])
    assert [text.partition(" (")[0] for text in found["failed"]] == ["1 of 2 tests"]
    assert result["code"] == 0
    assert f"panpan: {found['line']}" in str(result["stderr"]).splitlines()


def test_shown_claim_is_verified_until_a_file_changes(panpan: Panpan) -> None:
    (panpan.workspace / "test_a.py").write_text("def test_one():\n    pass\n")
    lines = []
    steps = [
        *(call("Bash", {"command": PYTEST.replace(" -q", "")}), say("All tests pass.")),
        *(call("Bash", {"command": "echo '# more' >> test_a.py"}), say("Done.")),
    ]
    with serving(steps) as server:
        panpan.use(server)
        for flags in ([], ["--continue"]):
            result = panpan.run("-p", "do it", "--yes", "-f", "json", *flags).result
            lines.append(result["verification"]["line"])

    assert "1 passed" in str(server.requests[1].raw)
    assert "generated xml file" not in str(server.requests[1].raw)
    assert lines[0].startswith("verified: 1 test passed (pytest, ")
    assert lines[1].startswith("stale: 1 test (pytest; test_a.py changed since)")


def test_tests_that_the_session_wrote_are_counted(panpan: Panpan) -> None:
    (panpan.workspace / "test_a.py").write_text("def test_one():\n    pass\n\ndef test_two():\n    pass\n")
    write = "printf 'def test_three():\\n    pass\\n' > test_b.py"

    _, result = turn(panpan, "All tests pass, the new tests too.", f"{write} && {PYTEST}")

    found = result["verification"]
    assert isinstance(found, dict)
    assert (len(found["verified"]), found["unverified"]) == (1, [])
    assert found["verified"][0].startswith("3 tests passed (pytest, ")
    assert found["verified"][0].endswith(", 1 of them in files of this session)")


def test_required_evidence_that_never_comes_fails_the_run(panpan: Panpan) -> None:
    with serving([say("It builds.")] * 4) as server:
        panpan.use(server)
        done = panpan.run("-p", "do it", "--set", "receipts.verification=require", "-f", "json")

    assert len(server.requests) == 4
    assert (done.code, done.result["is_error"], done.result["result"]) == (1, True, "It builds.")
    assert 'the answer claims "It builds", which no command of this session shows' in done.result["errors"][0]
    assert done.result["errors"][0] in done.stderr


def test_closing_line_adds_no_byte_to_any_request(panpan: Panpan) -> None:
    (panpan.workspace / "a.txt").write_text("one\n")
    bodies = []
    for verification in ("report", "off"):
        flags = (
            "--set",
            f"receipts.verification={verification}",
            "--session-id",
            "5c1b2b7e-0e0f-4a0e-8d6f-0a9f4c0d1e2f",
        )
        requests, result = turn(panpan, "All tests pass.", "cat a.txt", *flags)
        bodies.append([request.raw for request in requests])
        assert ("verification" in result) == (verification == "report")
        for file in panpan.session_files():
            file.unlink()

    assert len(bodies[0]) == 2
    assert bodies[0] == bodies[1]
