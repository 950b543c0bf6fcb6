"""MCP servers that others wrote, and the conformance suite of the protocol's authors, in a Node from its wheel."""

import json
import os
import shlex
import signal
import subprocess
from collections.abc import Iterator
from contextlib import aclosing, suppress
from pathlib import Path
from typing import Any

import pytest

from panpan.capabilities.mcp.servers import McpServers
from panpan.types.events import ToolProgress
from panpan.types.messages import UserMessage
from panpan.types.permission import UserAnswer, UserQuestion
from tests.capabilities.mcp.place import Place, events_of, results_in, search
from tests.faces.mcp_server.processes import arguments, pipe, serving
from tests.peers.installs import installed_once
from tests.peers.mcp_conformance_client import take_defaults
from tests.peers.node import install_packages, node
from tests.prepared_command import PreparedCommand

SUITE = "@modelcontextprotocol/conformance@0.2.0-alpha.12"
INSPECTOR = "@modelcontextprotocol/inspector@2.12.0"
SERVERS = ("everything@2026.8.31", "filesystem", "memory")
LEGACY = ("initialize", "tools_call", "elicitation-sep1034-client-defaults", "sse-retry")
MODERN = (
    "tools_call", "request-metadata", "sep-2322-client-request-state", "http-standard-headers", "http-custom-headers",
    "http-invalid-tool-headers", "json-schema-ref-no-deref", "json-schema-2020-12-preservation",
)  # fmt: skip
"""Scenarios of the two requirement sets that need no login."""
LOGINS = (
    "metadata-default", "metadata-var1", "metadata-var2", "metadata-var3", "basic-cimd", "scope-from-www-authenticate",
    "scope-from-scopes-supported", "scope-omitted-when-undefined", "scope-step-up", "scope-retry-limit",
    "token-endpoint-auth-basic", "token-endpoint-auth-post", "token-endpoint-auth-none", "pre-registration",
)  # fmt: skip
MODERN_LOGINS = (
    "resource-mismatch", "offline-access-scope", "offline-access-not-supported", "authorization-server-migration",
    "iss-supported", "iss-not-advertised", "iss-supported-missing", "iss-wrong-issuer", "iss-unexpected",
    "iss-normalized", "metadata-issuer-mismatch",
)  # fmt: skip
"""Those with one, whose names begin with `auth/`; the first are in both sets."""
SCENARIOS = (
    *((one, "2025-11-25") for one in (*LEGACY, *(f"auth/{name}" for name in LOGINS))),
    *((one, "2026-07-28") for one in (*MODERN, *(f"auth/{name}" for name in (*LOGINS, *MODERN_LOGINS)))),
)
SERVED = {
    "2025-11-25": (
        "server-initialize", "server-session-lifecycle", "ping", "tools-list", "server-sse-multiple-streams",
        "dns-rebinding-protection",
    ),
    "2026-07-28": (
        "tools-list", "server-sse-multiple-streams", "dns-rebinding-protection", "http-header-validation",
        "sep-2164-resource-not-found", "input-required-result-unsupported-methods",
        "input-required-result-validate-input",
    ),
}  # fmt: skip
"""Scenarios of servers that need no tools of the suite's own."""
NOT_TESTABLE = {
    "server-stateless": 4,  # tools with logs and elicitation
    "caching": 3,  # prompts, resources and templates of them
}
"""Scenarios of the newer revision with checks that need such tools, and the number of these."""


@pytest.fixture(scope="session")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the packages, 60 MB; without a registry the tests are skipped."""
    names = [SUITE, INSPECTOR, *(f"@modelcontextprotocol/server-{name}" for name in SERVERS)]
    return installed_once(tmp_path_factory, "mcp", lambda folder: install_packages(folder, names)) / "node_modules"


@pytest.fixture(scope="module")
def client() -> Iterator[PreparedCommand]:
    """The client, which is forked: its start would be most of its time."""
    command = PreparedCommand("tests.peers.mcp_conformance_client:main", PYTHONPATH=str(Path(__file__).parents[2]))
    yield command
    command.close()


@pytest.mark.parametrize(("scenario", "revision"), SCENARIOS)
def test_conformance_scenario_passes(
    packages: Path, client: PreparedCommand, tmp_path: Path, scenario: str, revision: str
) -> None:
    suite = packages / "@modelcontextprotocol/conformance/dist/index.js"
    command = shlex.join(client.argv(env=client.environment))
    words = ["client", "--command", command, "--scenario", scenario, "--spec-version", revision, "-o", str(tmp_path)]

    done = subprocess.run(
        [node(), str(suite), *words], env=client.environment, capture_output=True, text=True, timeout=60
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert ", 0 failed" in done.stdout + done.stderr


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of panpan as a server."""
    place = Place(tmp_path_factory.mktemp("served").resolve())
    place.env["PATH"] = os.environ["PATH"]
    with serving(place, "--http", "--no-token") as process:
        yield pipe(process.stderr).readline().split()[-1]


def judged(packages: Path, url: str, scenario: str, revision: str) -> tuple[int, str]:
    """Return the exit status of the suite, and what it says of the server at an address."""
    suite = packages / "@modelcontextprotocol/conformance/dist/index.js"
    words = ["server", "--url", url, "--scenario", scenario, "--spec-version", revision]
    done = subprocess.run([node(), str(suite), *words], capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("scenario", "revision"), [(one, revision) for revision, scenarios in SERVED.items() for one in scenarios]
)
def test_server_passes_conformance_scenario(packages: Path, served: str, scenario: str, revision: str) -> None:
    status, said = judged(packages, served, scenario, revision)

    assert status == 0, said
    assert ", 0 failed" in said
    assert "Passed: 0/" not in said


@pytest.mark.parametrize(("scenario", "missing"), NOT_TESTABLE.items())
def test_server_fails_only_what_needs_fixtures(packages: Path, served: str, scenario: str, missing: int) -> None:
    _, said = judged(packages, served, scenario, "2026-07-28")
    errors = [line for line in said.splitlines() if line.strip().startswith("Error:")]

    assert f", {missing} failed" in said
    assert all("Not testable" in line or "Method not found" in line for line in errors), said
    assert len(errors) == missing


def test_inspector_lists_and_calls_tools(packages: Path, place: Place) -> None:
    inspector = packages / "@modelcontextprotocol/inspector/clients/launcher/build/index.js"
    program, *words = arguments(place, str(place.root))
    target = [node(), str(inspector), "--cli", program, "--", *words]

    def said(*method: str) -> Any:
        done = subprocess.run([*target, *method], env=place.env, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    tools = said("--method", "tools/list", "--strict")["tools"]
    result = said("--method", "tools/call", "--tool-name", "panpan", "--tool-arg", "prompt=hi")

    assert [tool["name"] for tool in tools] == ["env_doctor", "session_search", "panpan"]
    assert result["content"] == [{"type": "text", "text": "done"}]
    assert result["structuredContent"]["subtype"] == "success"


@pytest.fixture
def place(tmp_path: Path, packages: Path) -> Place:
    place = Place(tmp_path.resolve())
    place.env["PATH"] = os.environ["PATH"]
    return place


def server(packages: Path, name: str, *words: str, **keys: Any) -> dict[str, Any]:
    """Return options of a session with one of the reference servers, called `peer`."""
    script = packages / f"@modelcontextprotocol/server-{name}/dist/index.js"
    entry = {"command": node(), "args": [str(script), *words], **keys}
    return {"mcp_config": [json.dumps({"mcpServers": {"peer": entry}})]}


def call(tool: str, **arguments: Any) -> tuple[str, dict[str, Any]]:
    return "CallTool", {"name": f"mcp__peer__{tool}", "arguments": arguments}


async def test_tools_of_everything_are_called_and_answered(place: Place, packages: Path) -> None:
    asked: list[UserQuestion] = []

    async def ask(questions: Any) -> list[UserAnswer]:
        asked.extend(questions)
        return (
            [UserAnswer(("Write an answer",), "Ada")] if len(questions) == 1 else list(await take_defaults(questions))
        )

    async with place.opening(
        search("echo"),
        call("echo", message="hello"),
        call("get-tiny-image"),
        call("trigger-long-running-operation", duration=1, steps=4),
        call("trigger-elicitation-request"),
        ask_user=ask,
        **server(packages, "everything"),
    ) as session:
        events = await events_of(session, "see @peer:demo://resource/static/document/features.md")
        prompts = [name for name in session.commands.names if name.startswith("mcp__peer__")]

    found, echoed, drawn, slow, elicited = results_in(events)
    assert "mcp__peer__echo" in found
    assert "Echo: hello" in echoed
    assert "image" in drawn
    assert "Steps: 4" in slow
    assert asked
    assert "mcp-content" in elicited
    assert prompts == [] or "mcp__peer__simple-prompt" in prompts


async def test_prompts_of_everything_are_commands_of_the_next_session(place: Place, packages: Path) -> None:
    options = server(packages, "everything")
    await place.events(search("echo"), **options)

    async with place.opening(**options) as session:
        names = set(session.commands.names)
        events = await events_of(session, "/mcp__peer__args-prompt Paris France")

    assert {"mcp__peer__simple-prompt", "mcp__peer__args-prompt"} <= names
    assert events


async def test_thousand_calls_leave_nothing(place: Place, packages: Path) -> None:
    uses = [search("echo"), *(call("echo", message=str(number)) for number in range(1_000))]

    results = await place.results(*uses, overrides={"max_rounds": 1_100}, **server(packages, "everything"))

    assert len(results) == 1_001
    assert all(f"Echo: {number}\n" in result for number, result in enumerate(results[1:]))


async def test_filesystem_stays_in_its_box(place: Place, packages: Path) -> None:
    for folder in ("out", "src"):
        (place.root / folder).mkdir()
    (place.root / "a.txt").write_text("inside")
    script = packages / "@modelcontextprotocol/server-filesystem/dist/index.js"
    values = {"command": node(), "args": [str(script), str(place.root)], "is_boxed": True, "write": ["out"]}
    lines = [f"{key} = {json.dumps(value)}" for key, value in values.items()]
    (place.home / "settings.toml").write_text("\n".join(["[mcp.peer]", *lines]))

    found, read, _, refused = await place.results(
        search("read file"),
        call("read_text_file", path=str(place.root / "a.txt")),
        call("write_file", path=str(place.root / "out" / "b.txt"), content="new"),
        call("write_file", path=str(place.root / "src" / "c.txt"), content="new"),
        overrides={"sandbox.mode": "on"},
    )

    if "none works here" in found:
        pytest.skip("no sandbox works here")
    assert "inside" in read
    assert (place.root / "out" / "b.txt").read_text() == "new"
    assert not (place.root / "src" / "c.txt").exists(), refused


async def test_call_that_is_given_up_leaves_its_server_to_others(place: Place, packages: Path) -> None:
    slow = call("trigger-long-running-operation", duration=300, steps=3_000)
    async with place.opening(slow, call("echo", message="hi"), **server(packages, "everything")) as session:
        await session[McpServers].ready("peer")
        async with aclosing(session.submit("go")) as events:
            async for event in events:
                if isinstance(event, ToolProgress) and "of 3000" in event.text:
                    break
        (after,) = results_in(await events_of(session))
        (pid,) = _running(packages, "everything")

    assert "Echo: hi" in after
    assert pid


async def test_resource_of_everything_goes_along(place: Place, packages: Path) -> None:
    async with place.opening(search("echo"), **server(packages, "everything")) as session:
        await events_of(session, "see @peer:demo://resource/static/document/features.md")
        offered = session[McpServers].offered_mentions
        said = next(message for message in session.conversation.messages if isinstance(message, UserMessage))

    assert "[the resource demo://resource/static/document/features.md]" in said.text
    assert "peer:demo://resource/static/document/features.md" in offered


async def test_call_whose_server_is_killed_is_told_and_another_runs(place: Place, packages: Path) -> None:
    slow = call("trigger-long-running-operation", duration=300, steps=3_000)
    async with place.opening(slow, call("echo", message="hi"), **server(packages, "everything")) as session:
        await session[McpServers].ready("peer")
        results: list[str] = []
        async with aclosing(session.submit("go")) as events:
            async for event in events:
                results += results_in([event])
                if isinstance(event, ToolProgress) and "of 3000" in event.text:
                    for pid in _running(packages, "everything"):
                        os.kill(pid, signal.SIGKILL)

    lost, after = results
    assert "whether the call did anything is not known" in lost
    assert "Echo: hi" in after


async def test_memory_survives_its_kill(place: Place, packages: Path) -> None:
    options = server(packages, "memory", env={"MEMORY_FILE_PATH": str(place.folder / "memory.json")})
    entity = {"name": "panpan", "entityType": "program", "observations": ["writes"]}
    async with place.opening(
        search("create entities"), call("create_entities", entities=[entity]), call("read_graph"), **options
    ) as session:
        before = results_in(await events_of(session))
        for pid in _running(packages, "memory"):
            os.kill(pid, signal.SIGKILL)
    after = await place.results(call("read_graph"), **options)

    assert "panpan" in before[2]
    assert "panpan" in after[0]


def _running(packages: Path, name: str) -> list[int]:
    """Return the processes of a server that this worker started; those of others run beside it."""
    script = str(packages / f"@modelcontextprotocol/server-{name}/")
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            if parent == os.getpid() and script in (folder / "cmdline").read_text():
                found.append(int(folder.name))
    return found
