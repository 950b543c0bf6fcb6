"""/agents lists which kinds of subagents there are, and which of them the session has had."""

from pathlib import Path

import pytest

from panpan.capabilities.subagents.definitions.load import AgentDefinitions
from panpan.capabilities.subagents.host import SubagentHost
from panpan.types.agent import AgentAccess, AgentDefinition, AgentModel
from tests.faces.terminal.commands.command_fixtures import terminal_in, type_in
from tests.fakes.agent_logs import keep_turn

EXPLORE = AgentDefinition(
    "explore", "Looks around\nin the code.", "Look.", AgentAccess(("Read", "Grep")), source="panpan"
)
WRITER = AgentDefinition(
    "writer",
    "Writes \x1b[2Jdocs.",
    "Write.",
    AgentAccess(disallowed_tools=("Bash",)),
    AgentModel("fast"),
    source="agents/writer.md",
)


@pytest.mark.parametrize("width", [30, 60, 120])
async def test_agents_command_lists_kinds_with_purpose_and_tools(tmp_path: Path, width: int) -> None:
    terminal = terminal_in(tmp_path / "p", width=width)
    terminal.session[AgentDefinitions].all = (EXPLORE, WRITER)

    await type_in(terminal, "/agents")

    text = " ".join(terminal.text.split())
    assert "explore Looks around in the code. the session's model · Read, Grep from panpan" in text
    assert "writer Writes docs. fast · all tools but Bash from agents/writer.md" in text
    assert "None has been started in this session" in text
    assert terminal.widest <= width


async def test_agents_command_lists_subagents_with_their_end(tmp_path: Path) -> None:
    terminal = terminal_in(tmp_path / "p", width=120)
    folder = tmp_path / "p" / "s1" / "subagents"
    keep_turn(folder, "aaaaaaaa", "t1", name="explore", description="find the loss", end="failed")
    keep_turn(folder, "aaaaaaaa", "t3", name="explore", description="find the loss", end="done")
    keep_turn(folder, "cccccccc", "t4", name="plan", description="plan it", end="done")
    keep_turn(folder, "cccccccc", "t5", name="plan", description="plan it")
    keep_turn(folder, "bbbbbbbb", "t2", name="writer", description="tell of it")
    terminal.session[AgentDefinitions].all = (EXPLORE,)
    terminal.session[SubagentHost].running = {"bbbbbbbb"}

    await type_in(terminal, "/agents")

    assert "aaaaaaaa  explore: find the loss (done)" in terminal.text
    assert "cccccccc  plan: plan it (interrupted when panpan ended)" in terminal.text
    assert "bbbbbbbb  writer: tell of it (runs)" in terminal.text


async def test_agents_command_says_how_to_define_one(tmp_path: Path) -> None:
    terminal = await type_in(terminal_in(tmp_path / "p"), "/agents")

    assert "there are no subagents; a file agents/NAME.md defines one" in terminal.text
