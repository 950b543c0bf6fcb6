"""Behaviour that the four tools share: previews, questions and the sandbox."""

import json
from collections.abc import Iterator, Sequence
from contextlib import aclosing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pytest

from panpan.capabilities.packages.capability import unavailable_tools
from panpan.capabilities.packages.conda import CondaTool
from panpan.capabilities.packages.pip import PipInput, PipTool
from panpan.capabilities.packages.pixi import PixiTool
from panpan.capabilities.packages.target import PackageConfig
from panpan.capabilities.packages.uv import UvInput, UvTool
from panpan.config.settings import PackageSettings
from panpan.core.effects import PathUse
from panpan.errors import ToolError
from panpan.system.files.paths import PathResolver
from panpan.system.sandbox.choice import SandboxChoice
from panpan.system.sandbox.command_sandbox import CommandSandbox, Domains
from panpan.system.sandbox.profile import Boxed, Profile
from panpan.types.content import SummaryDisplay
from panpan.types.events import Output, Progress
from panpan.types.permission import Opening
from tests.capabilities.packages.conftest import UV, Workspace, make_environment
from tests.fakes.sandboxes import Boxes


@pytest.mark.parametrize("tool", [PipTool(), UvTool(), CondaTool(), PixiTool()], ids=lambda tool: tool.name)
def test_package_tool_costs_little_in_every_request(tool: PipTool | UvTool | CondaTool | PixiTool) -> None:
    definition = tool.definition

    assert len(definition.description) + len(json.dumps(definition.input_schema)) <= 735


@pytest.fixture
def house(workspace: Workspace, pip_files: Path) -> Workspace:
    make_environment(workspace.root / ".venv", pip_files)
    return workspace


async def test_question_names_command_environment_hosts_and_sources(house: Workspace) -> None:
    args = PipInput(operation="install", packages=("lamp>=1", "-e ./lib", "x @ git+https://code.example.org/x"))

    said = await PipTool(house.setup).describe(args, house.call_context())

    python = f"{house.root}/.venv/bin/python"
    assert f"it runs `{python} -I -m pip install --editable {house.root}/lib -- 'lamp>=1' " in said
    assert f"for the environment {house.root}/.venv (venv, Python 3." in said
    assert "it fetches from pypi.org, files.pythonhosted.org" in said
    assert "code.example.org" in said
    assert "; not from an index alone: " in said  # and folders that the machine's own configuration names
    assert f"-e {house.root}/lib; x @ git+https://code.example.org/x" in said


async def test_permission_gate_learns_the_paths(house: Workspace) -> None:
    (house.root / "requirements.txt").write_text("-e ./src\n")
    ctx, tool = house.call_context(), PipTool(house.setup)

    install = await tool.effects(PipInput(operation="install", file="requirements.txt"), ctx)
    look = await tool.effects(PipInput(operation="list"), house.call_context())
    changing, looking = list(install.path_uses), list(look.path_uses)

    assert PathUse(f"{house.root}/.venv", "write") in changing
    assert PathUse(f"{house.root}/requirements.txt", "read") in changing
    assert PathUse(f"{house.root}/src", "read") in changing
    assert list(looking) == [PathUse(f"{house.root}/.venv", "read")]


async def test_call_whose_plan_changed_since_the_question_is_refused(house: Workspace) -> None:
    (house.root / "requirements.txt").write_text("lamp\n")
    args = PipInput(operation="install", file="requirements.txt")
    ctx, tool = house.call_context(), PipTool(house.setup)
    await tool.describe(args, ctx)

    (house.root / "requirements.txt").write_text("--index-url https://evil.example.org/simple\nlamp\n")

    with pytest.raises(ToolError, match="has changed since it was allowed"):
        async for _ in tool.run(args, ctx):
            pass


async def test_outside_environment_needs_a_yes(house: Workspace, tmp_path: Path) -> None:
    outside = make_environment(tmp_path / "outside")

    with pytest.raises(ToolError, match="outside the workspace"):
        await house.run(UvTool, "install", "lamp", environment=str(outside))


async def test_project_program_does_not_get_the_users_credentials(
    house: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sandbox = CommandSandbox(is_on=True)
    if await sandbox.is_missing():
        pytest.skip("; ".join((await sandbox.choice()).passed_over))
    monkeypatch.setenv("HOME", str(home := tmp_path / "home"))
    home.mkdir(exist_ok=True)
    (home / ".netrc").write_text("password hunter2")
    (house.root / "pyproject.toml").touch()
    (house.root / "look.sh").write_text("echo here; cat ~/.netrc")
    boxed = with_uv(
        replace(house, ctx=replace(house.ctx, sandbox=sandbox)),
        'while [ "$1" != -- ]; do shift; done; shift; exec "$@"',
    )

    said = (await boxed.run(UvTool, "run", command=["sh", "look.sh"])).text

    await sandbox.aclose()
    assert "here" in said
    assert "hunter2" not in said


@pytest.mark.parametrize(
    ("package", "has_login", "box"), [("lamp", True, "unasked"), ("./lib", False, "unasked"), ("./lib", True, "usual")]
)
async def test_build_beside_credentials_is_asked_about(
    house: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: str, has_login: bool, box: str
) -> None:
    monkeypatch.setenv("HOME", str(home := tmp_path / "home"))
    home.mkdir(exist_ok=True)
    if has_login:
        (home / ".netrc").touch()
    (house.root / "lib").mkdir()

    args = PipInput(operation="install", packages=(package,))

    (command,) = (await PipTool(house.setup).effects(args, house.call_context())).commands
    assert command.narrowest_box == box


@pytest.mark.parametrize(
    ("domains", "entry"),
    [((), "network"), (("pypi.org",), "network"), (("pypi.org", "*.pythonhosted.org"), "on")],
)
async def test_network_is_requested_unless_all_hosts_are_granted(
    house: Workspace, domains: tuple[str, ...], entry: str
) -> None:
    sandbox = CommandSandbox(is_on=True, domains=Domains(domains))
    working = (await sandbox.choice()).sandbox
    if working is None or not working.can_grant_domains:
        pytest.skip("no sandbox works here that lets commands to single hosts")
    ctx = replace(house.call_context(), sandbox=sandbox)

    assert (await UvTool(house.setup).effects(UvInput(operation="install", packages=("lamp",)), ctx)).sandbox == entry


async def test_local_wheels_need_no_network(house: Workspace, wheels: Path) -> None:
    args = UvInput(operation="install", packages=("lamp",), wheels=str(wheels))

    assert (await UvTool(house.setup).effects(args, house.call_context())).sandbox == "on"


async def test_time_limits_are_those_of_the_settings(house: Workspace) -> None:
    def limit(operation: str, **settings: float) -> float:
        args = PipInput.model_validate({"operation": operation, "packages": ["lamp"]})
        return PipTool(PackageConfig(PackageSettings.model_validate(settings))).plan(args, house.ctx).timeout_s

    assert (limit("install"), limit("uninstall"), limit("list")) == (600.0, 120.0, 30.0)
    assert [tool().max_timeout_s for tool in (PipTool, CondaTool, UvTool, PixiTool)] == [600.0, 900.0, 300.0, 300.0]
    assert UvTool().time_limit_s(UvInput(operation="lock")) == 300.0
    assert limit("install", pip_timeout_s=5.0) == 5.0


def with_uv(house: Workspace, script: str) -> Workspace:
    """Return the workspace with another program as uv: a script for sh."""
    program = house.root.parent / "bin" / "uv"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return house.with_variables(PATH=f"{program.parent}:/usr/bin:/bin")


def slow_install(house: Workspace) -> str:
    """Return a script that installs lamp, or takes it away, and does not end after it has installed it."""
    record = next((house.root / ".venv").glob("lib/python3*/site-packages")) / "lamp-1.0.dist-info"
    made = f'mkdir {record}; printf "Name: lamp\\nVersion: 1.0\\n\\n" >{record}/METADATA; echo installed'
    return f"[ $2 = uninstall ] && exec rm -r {record}\n{made}\nexec sleep 600"


async def test_call_over_its_time_is_stopped_and_reported(house: Workspace) -> None:
    setup = PackageConfig(PackageSettings(uv_timeout_s=1.0))
    slow = with_uv(replace(house, setup=setup), "echo resolving; exec sleep 600")

    output = await slow.run(UvTool, "install", "lamp")

    assert output.is_error
    assert output.text.startswith("timed out after 1 s and was stopped")
    assert "resolving" in output.text
    assert "".join(house.progress) == "resolving\n"


async def test_changes_before_a_timeout_are_reported_and_undoable(house: Workspace) -> None:
    setup = replace(house.setup, settings=PackageSettings(uv_timeout_s=1.0))
    slow = with_uv(replace(house, setup=setup), slow_install(house))

    output = await slow.run(UvTool, "install", "lamp")

    assert output.text.splitlines()[:3] == [
        "timed out after 1 s and was stopped",
        "added: lamp 1.0",
        "rollback takes that back",
    ]
    assert output.display == SummaryDisplay(text="timed out after 1 s and was stopped; + lamp 1.0")
    assert (await slow.text(UvTool, "rollback")).splitlines()[1:] == ["removed: lamp 1.0"]


async def test_changes_before_an_interrupt_are_undoable(house: Workspace) -> None:
    slow = with_uv(house, slow_install(house))
    tool, args = UvTool(house.setup), UvInput(operation="install", packages=("lamp",))
    left: list[str] = []

    async with aclosing(tool.run(args, replace(slow.call_context(), note_unfinished=left.append))) as yields:
        assert (await anext(yields)) == Progress("installed\n")

    done = f"had changed {house.root}/.venv (+ lamp 1.0); rollback takes that back"
    assert left == [f"Until it was stopped, `uv install lamp` {done}."]
    assert (await slow.text(UvTool, "rollback")).splitlines()[1:] == ["removed: lamp 1.0"]


async def test_packages_folder_stays_when_the_last_package_goes(house: Workspace) -> None:
    site = next((house.root / ".venv").glob("lib/python3*/site-packages"))

    await with_uv(house, f"rm -r {site}").run(UvTool, "uninstall", "lamp")

    assert list(site.iterdir()) == []


async def test_install_in_the_sandbox_writes_nothing_else(house: Workspace, wheels: Path) -> None:
    sandbox = CommandSandbox(is_on=True)
    if await sandbox.is_missing():
        pytest.skip("; ".join((await sandbox.choice()).passed_over))
    boxed = replace(house, ctx=replace(house.ctx, sandbox=sandbox))
    try:
        texts = [
            await boxed.text(tool, "install", package, wheels=str(wheels))
            for tool, package in ((PipTool, "lamp"), *([(UvTool, "shelf==1.0")] if UV.exists() else []))
        ]
        listed = [path.name for path in house.root.parent.iterdir()]
    finally:
        await sandbox.aclose()

    assert texts[0].splitlines()[1] == "added: lamp 1.0, shelf 1.5"
    assert texts[1:] == [] or "changed: shelf 1.5 → 1.0" in texts[1]
    assert Path(house.ctx.environment["HOME"]).name not in listed


def test_tools_without_their_program_or_project_are_not_offered(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "micromamba").touch(mode=0o755)
    (tmp_path / "work").mkdir()
    variables = {"PATH": f"{tmp_path}/bin"}
    assert set(unavailable_tools(PathResolver(tmp_path / "work"), variables)) == {"pip", "uv", "pixi"}

    (tmp_path / "work" / "requirements.txt").touch()

    assert set(unavailable_tools(PathResolver(tmp_path / "work"), variables)) == {"uv", "pixi"}


async def test_run_output_is_shortened_and_kept_whole_on_disk(house: Workspace) -> None:
    (house.root / "pyproject.toml").write_text('[project]\nname = "study"\nversion = "1"\n')
    if not UV.exists():
        pytest.skip("uv is not installed beside the tests")

    output = await house.run(UvTool, "run", command=["python", "-c", "print('x' * 100_000)"])

    assert isinstance(output, Output)
    assert len(output.text) < 31_000


async def test_calls_with_one_id_are_kept_apart(house: Workspace) -> None:
    ctx, tool = house.call_context(), PipTool(house.setup)
    await tool.describe(PipInput(operation="install", packages=("lamp",)), ctx)

    said = await tool.describe(PipInput(operation="install", packages=("desk",)), ctx)

    assert said.split("`")[1].endswith("install -- desk")


@pytest.mark.parametrize("operation", ["install", "list"])
async def test_environment_folder_linked_outside_is_told_to_the_gate(
    house: Workspace, tmp_path: Path, operation: str
) -> None:
    (packages,) = (house.root / ".venv" / "lib").glob("python3*/site-packages")
    packages.rename(tmp_path / "others")
    packages.symlink_to(tmp_path / "others")
    args = PipInput.model_validate({"operation": operation, "packages": ("lamp",)})

    told = await PipTool(house.setup).effects(args, house.call_context())

    assert PathUse(str(tmp_path / "others"), "read" if operation == "list" else "write") in list(told.path_uses)
    with pytest.raises(ToolError, match="outside the workspace"):
        await house.run(PipTool, operation, "lamp")


@pytest.mark.parametrize("name", ["lamp.zip", "lamp-1.0.tar.gz", "lamp.whl"])
async def test_possible_file_is_not_taken_for_a_package(house: Workspace, name: str) -> None:
    with pytest.raises(ToolError, match="may be a file"):
        await house.run(PipTool, "install", name)


class SeenBoxes(Boxes):
    """Keeps the bounds of what it is given."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[Profile] = []

    @contextmanager
    def wrap(self, argv: Sequence[str], profile: Profile, cwd: Path) -> Iterator[Boxed]:
        self.seen.append(profile)
        yield Boxed(argv)


@pytest.mark.parametrize(
    ("opening", "has_network"),
    [
        (None, True),
        (Opening("network"), True),
        (Opening("network", hosts=("package-indexes",)), False),
        (Opening("on"), False),
    ],
)
async def test_install_has_the_network_that_the_user_granted(
    house: Workspace, opening: Opening | None, has_network: bool
) -> None:
    boxes = SeenBoxes()

    async def find() -> SandboxChoice:
        return SandboxChoice(boxes)

    sandbox = CommandSandbox(is_on=True, find=find)
    boxed = with_uv(replace(house, ctx=replace(house.ctx, sandbox=sandbox, opening=opening)), "exit 1")
    with suppress(ToolError):
        await boxed.run(UvTool, "install", "lamp")
    await sandbox.aclose()

    assert [profile.has_network for profile in boxes.seen] == [has_network] * len(boxes.seen)
    assert boxes.seen
