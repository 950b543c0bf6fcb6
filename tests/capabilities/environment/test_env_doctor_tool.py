import json
from pathlib import Path

import pytest

from panpan.capabilities.environment.env_doctor import EnvDoctorTool
from panpan.core.effects import Effects
from panpan.core.tool import ToolContext
from panpan.errors import ToolError
from panpan.types.content import SummaryDisplay
from panpan.types.events import Output
from tests.fakes.context import context_in
from tests.fakes.machines import Machine


def project(root: Path, **package: str) -> Path:
    """A project on this very machine, with an environment beside whose packages nothing is needed."""
    machine = Machine(root / "other")
    machine.venv()
    machine.package("einops-exts", "0.0.4", **package)  # type: ignore[arg-type]
    workspace = root / "workspace"
    (root / "other/home/me/project").rename(workspace)
    python = workspace / ".venv/bin/python"
    python.unlink()
    python.symlink_to("/bin/sh")  # something that this machine has
    return workspace


async def called(context: ToolContext, tool: EnvDoctorTool | None = None, **arguments: str) -> Output:
    tool = tool or EnvDoctorTool()
    (output,) = [one async for one in tool.run(tool.input_model(**arguments), context)]  # type: ignore[arg-type]
    assert isinstance(output, Output)
    return output


async def test_doctor_names_the_first_broken_layer_reason_and_advice(tmp_path: Path) -> None:
    workspace = project(tmp_path, requires=["einops>=0.4"])  # type: ignore[arg-type]

    output = await called(context_in(workspace))

    heading, first, why, mend, *rest = output.text.splitlines()
    assert heading == f"{workspace}/.venv: it is the project's"
    assert first == "first broken layer, from below: Python and packages (python)"
    assert why == "why: einops-exts 0.0.4 needs einops>=0.4: it is not installed"
    assert mend.startswith("what to do: install a version")
    assert any(line.startswith("broken: einops-exts 0.0.4 needs") for line in rest)
    assert output.display == SummaryDisplay(text="broken: Python and packages")


async def test_doctor_lists_one_layer_whole_on_request(tmp_path: Path) -> None:
    workspace = project(tmp_path)

    output = await called(context_in(workspace), environment=".venv", layer="python")

    assert "no layer is broken" in output.text
    assert "einops-exts: 0.0.4 py3-none-any [" in output.text
    assert output.display == SummaryDisplay(text="no layer is broken")


async def test_doctor_needs_an_outside_environment_to_be_named(tmp_path: Path) -> None:
    outside = project(tmp_path) / ".venv"
    workspace = tmp_path / "empty"
    workspace.mkdir()
    (workspace / ".venv").symlink_to(outside)

    with pytest.raises(ToolError, match=r"is outside .it is the project's.; to check it, name it as environment"):
        await called(context_in(workspace))
    with pytest.raises(ToolError, match="outside the workspace"):
        await called(context_in(workspace), environment=str(outside))


async def test_doctor_does_not_read_secrets_through_an_environment(tmp_path: Path) -> None:
    workspace = project(tmp_path)
    (workspace / ".env").write_text("Name: secret-name\nVersion: 1\n\n")
    metadata = workspace / ".venv/lib/python3.11/site-packages/einops_exts-0.0.4.dist-info/METADATA"
    metadata.unlink()
    metadata.symlink_to(workspace / ".env")

    output = await called(context_in(workspace))

    assert "secret-name" not in output.text
    assert "METADATA: it may hold secrets" in output.text


async def test_doctor_compares_with_the_workspaces_project(tmp_path: Path) -> None:
    workspace = project(tmp_path)
    (workspace / "requirements.txt").write_text("einops-exts>=1\n")

    output = await called(context_in(workspace))

    assert "why: requirements.txt:1 asks for einops-exts>=1: it is 0.0.4" in output.text
    assert f"uv pip install --python {workspace}/.venv/bin/python --requirement requirements.txt" in output.text


async def test_manifest_does_not_lead_to_secrets(tmp_path: Path) -> None:
    workspace = project(tmp_path)
    (workspace / ".env").write_text("canary-1\n")
    (workspace / "requirements.txt").write_text("-r .env\ngit+https://me:canary-2@example.org/x\n")

    output = await called(context_in(workspace))

    assert "canary" not in output.text
    assert "what .env asks for: it cannot be read" in output.text


async def test_doctor_only_reads_and_names_its_place(tmp_path: Path) -> None:
    tool = EnvDoctorTool()
    args = tool.input_model(environment="/opt/env")

    assert tool.only_reads
    assert await tool.effects(args, context_in(tmp_path)) == Effects(reads=("/opt/env",))
    assert tool.title(args) == "/opt/env"


def test_doctor_costs_few_tokens() -> None:
    definition = EnvDoctorTool().definition

    assert len(definition.description) + len(json.dumps(definition.input_schema)) <= 500


async def test_place_that_is_no_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="gone is not a folder; name an environment"):
        await called(context_in(tmp_path), environment="gone")


async def test_doctor_does_not_tell_a_withheld_manifest(tmp_path: Path) -> None:
    workspace = project(tmp_path)
    (workspace / "requirements.txt").write_text("canary\n")
    tool = EnvDoctorTool(lambda path, root: path == root / "requirements.txt")

    output = await called(context_in(workspace), tool)

    assert "canary" not in output.text
    assert "requirements.txt: it may hold secrets, or a rule withholds it" in output.text
