"""The gate for package managers: looking is free, changing asks, and the question names the change."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from anyio import Lock

from panpan.capabilities.packages.conda import CondaTool
from panpan.capabilities.packages.package_tool import PackageTool
from panpan.capabilities.packages.pip import PipTool
from panpan.capabilities.packages.uv import UvTool
from panpan.core.hooks import ToolCall
from panpan.core.tool import ToolContext
from panpan.core.tool_call import permission_for
from panpan.errors import ToolError
from panpan.permissions.gate import PermissionGate
from panpan.permissions.rules.rules import RuleSource
from panpan.permissions.sandbox_questions import SandboxQuestions
from panpan.system.sandbox.command_sandbox import CommandSandbox, Domains
from panpan.types.permission import Allow, Ask, Decision, Deny, PermissionMode
from tests.fakes.askers import yes
from tests.fakes.context import context_in
from tests.fakes.sandboxes import works, works_with_domains


def make_environment(place: Path) -> Path:
    """Make what tells of a virtual environment with pip, and nothing that could do anything."""
    packages = place / "lib" / "python3.12" / "site-packages" / "pip"
    packages.mkdir(parents=True)
    (packages / "__init__.py").touch()
    (place / "bin").mkdir()
    (place / "bin" / "python").touch(mode=0o755)
    (place / "pyvenv.cfg").touch()
    return place


@pytest.fixture
def ctx(tmp_path: Path) -> ToolContext:
    root = (tmp_path / "work").resolve()
    make_environment(root / ".venv")
    (root / "pyproject.toml").touch()
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "uv").touch(mode=0o755)
    return replace(context_in(root, tool_use_id="c"), environment={"PATH": str(tmp_path / "bin")})


async def call_of(ctx: ToolContext, tool: type[PackageTool[Any]], operation: str, **arguments: Any) -> ToolCall:
    given = {"operation": operation, **arguments}
    return await ToolCall.of("c", tool(), tool.input_model.model_validate(given), given, ctx)


async def decided(call: ToolCall, *allow: str, mode: PermissionMode = "default") -> Decision:
    return await PermissionGate([RuleSource("test", allow=allow)], mode=mode).before_tool(call)


@pytest.mark.parametrize("mode", ["default", "plan", "dontAsk"])
@pytest.mark.parametrize("operation", ["list", "freeze", "show"])
async def test_package_listing_is_free(ctx: ToolContext, operation: str, mode: PermissionMode) -> None:
    call = await call_of(ctx, PipTool, operation, packages=["lamp"])

    assert isinstance(await decided(call, mode=mode), Allow)


@pytest.mark.parametrize("operation", ["install", "uninstall", "create"])
async def test_package_changes_are_denied_in_plan_mode(ctx: ToolContext, operation: str) -> None:
    arguments = {"environment": "new"} if operation == "create" else {"packages": ["lamp"]}

    assert isinstance(await decided(await call_of(ctx, UvTool, operation, **arguments), "uv", mode="plan"), Deny)


@pytest.mark.parametrize("mode", ["default", "acceptEdits"])
async def test_install_asks_and_offers_a_rule_for_installs_alone(ctx: ToolContext, mode: PermissionMode) -> None:
    install = await call_of(ctx, UvTool, "install", packages=["lamp"])
    decision = await decided(install, mode=mode)

    assert isinstance(decision, Ask)
    assert decision.rule == "uv(install)"
    assert isinstance(await decided(install, "uv(install)"), Allow)
    assert isinstance(await decided(await call_of(ctx, UvTool, "uninstall", packages=["lamp"]), "uv(install)"), Ask)


async def test_project_program_asks_unless_a_rule_allows_it(ctx: ToolContext) -> None:
    run = await call_of(ctx, UvTool, "run", command=["python", "train.py"])
    decision = await decided(run)

    assert isinstance(decision, Ask)
    assert decision.rule is None
    assert isinstance(await decided(run, "uv(run)"), Allow)


@pytest.mark.parametrize("kind", ["deny", "ask"])
@pytest.mark.parametrize("command", [["curl", "-s", "x.org"], ["env", "curl", "x.org"], ["sh", "-c", "curl x.org"]])
async def test_command_rule_holds_for_package_manager_runs(ctx: ToolContext, command: list[str], kind: str) -> None:
    rules = RuleSource("test", allow=["uv(run)"], **{kind: ["Bash(curl *)"]})  # type: ignore[arg-type]
    gate = PermissionGate([rules], mode="bypassPermissions")

    bound = await gate.before_tool(await call_of(ctx, UvTool, "run", command=command))
    free = await gate.before_tool(await call_of(ctx, UvTool, "run", command=["python", "train.py"]))

    assert isinstance(bound, Deny if kind == "deny" else Ask)
    assert isinstance(free, Allow)


async def test_bash_rule_allows_no_run_in_an_environment(ctx: ToolContext) -> None:
    run = await call_of(ctx, UvTool, "run", command=["pytest"])

    assert isinstance(await decided(run, "Bash(pytest)", "Bash(pytest *)"), Ask)


async def test_package_question_names_the_sandbox_bounds(ctx: ToolContext) -> None:
    boxed = replace(ctx, sandbox=CommandSandbox(is_on=True, find=works))

    fetches = await decided(await call_of(boxed, UvTool, "install", packages=["lamp"]))
    removes = await decided(await call_of(boxed, UvTool, "uninstall", packages=["lamp"]))

    assert isinstance(fetches, Ask)
    assert fetches.offer.bounds == "sandboxed · writes here and in the environment, not .git · network"
    assert isinstance(removes, Ask)
    assert removes.offer.bounds == "sandboxed · writes here and in the environment, not .git · no network"


async def test_outside_environment_asks_whatever_is_allowed(ctx: ToolContext, tmp_path: Path) -> None:
    outside = make_environment(tmp_path / "outside")

    changes = await decided(await call_of(ctx, UvTool, "install", packages=["lamp"], environment=str(outside)), "uv")
    looks = await decided(await call_of(ctx, UvTool, "list", environment=str(outside)))

    assert isinstance(changes, Ask)
    assert isinstance(looks, Ask)
    assert "outside the workspace" in changes.reason.text
    assert changes.approved_paths == {outside.resolve()}


async def test_impossible_package_call_is_refused_unasked(ctx: ToolContext) -> None:
    with pytest.raises(ToolError, match="neither conda nor mamba nor micromamba is installed"):
        await call_of(ctx, CondaTool, "install", packages=["lamp"])


async def test_package_question_names_the_change(ctx: ToolContext) -> None:
    asker = yes()
    call = await call_of(ctx, UvTool, "install", packages=["lamp"])

    await permission_for(call, [PermissionGate([])], asker, Lock())

    (question,) = asker.questions
    environment = f"{ctx.paths.root}/.venv"
    assert (
        f"uv pip install --python {environment}/bin/python -- lamp` for the environment {environment}"
        in question.wording.effect
    )
    assert "it fetches from pypi.org" in question.wording.effect


async def test_install_network_needs_a_person(ctx: ToolContext) -> None:
    questions = SandboxQuestions([])

    async def asked(operation: str, *domains: str, can_grant: bool = True, **arguments: Any) -> Decision | None:
        sandbox = CommandSandbox(is_on=True, find=works_with_domains if can_grant else works, domains=Domains(domains))
        call = await call_of(replace(ctx, sandbox=sandbox), UvTool, operation, **arguments)
        return await questions.before_tool(call)

    install = await asked("install", packages=["lamp"])
    assert isinstance(install, Ask)
    assert install.is_protected
    assert install.reason.flags == "--allow-network=package-indexes"
    closed = await asked("install", can_grant=False, packages=["lamp"])
    assert isinstance(closed, Ask)
    assert closed.reason.flags == "--allow-network", "where single hosts cannot be opened"
    hosts = ("pypi.org", "files.pythonhosted.org")
    assert await asked("install", *hosts, packages=["lamp"]) is None
    assert isinstance(await asked("install", *hosts, can_grant=False, packages=["lamp"]), Ask)
    assert await asked("uninstall", packages=["lamp"]) is None
    assert await asked("run", command=["true"]) is None
    assert await asked("list") is None


@pytest.mark.parametrize("denied", ["pypi.org", "files.pythonhosted.org", "pythonhosted.org"])
async def test_denied_host_is_denied_to_a_package_manager(denied: str, ctx: ToolContext) -> None:
    gate = PermissionGate([RuleSource("test", deny=[f"WebFetch(domain:{denied})"])], mode="bypassPermissions")

    decision = await gate.before_tool(await call_of(ctx, PipTool, "install", packages=["lamp"]))

    assert isinstance(decision, Deny)
    assert denied in decision.reason.text
    assert isinstance(await gate.before_tool(await call_of(ctx, PipTool, "list")), Allow)


@pytest.mark.parametrize(
    ("operation", "arguments", "domains", "box"),
    [
        ("create", {"environment": "new"}, (), "unasked"),
        ("uninstall", {"packages": ["lamp"]}, (), "unasked"),
        ("run", {"command": ["python", "train.py"]}, (), "unasked"),
        ("install", {"packages": ["lamp"]}, ("pypi.org", "files.pythonhosted.org"), "unasked"),
        ("install", {"packages": ["lamp"]}, (), "asks"),
    ],
)
async def test_auto_runs_boxed_package_calls_unasked(
    ctx: ToolContext, operation: str, arguments: dict[str, Any], domains: tuple[str, ...], box: str
) -> None:
    sandbox = CommandSandbox(is_on=True, find=works_with_domains, domains=Domains(domains))
    call = await call_of(replace(ctx, sandbox=sandbox), UvTool, operation, **arguments)

    decision = await decided(call, mode="auto")

    assert (decision.box if isinstance(decision, Allow) else "asks") == box


async def test_auto_asks_about_an_environment_outside_any_box(ctx: ToolContext, tmp_path: Path) -> None:
    boxed = replace(ctx, sandbox=CommandSandbox(is_on=True, find=works))
    outside = str(make_environment(tmp_path / "outside"))

    elsewhere = await decided(
        await call_of(boxed, UvTool, "uninstall", packages=["x"], environment=outside), mode="auto"
    )
    unboxed = await decided(await call_of(ctx, UvTool, "uninstall", packages=["x"]), mode="auto")

    assert isinstance(elsewhere, Ask)
    assert isinstance(unboxed, Ask)
