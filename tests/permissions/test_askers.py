from dataclasses import replace
from pathlib import Path

import pytest
from anyio import Lock

from panpan.core.hooks import Hook, ToolCall
from panpan.core.tool_call import permission_for
from panpan.permissions.folder_gate import ApprovingAsker, DenyingAsker
from panpan.types.permission import Ask, Decision, PermissionAnswer, PermissionQuestion, Reason
from tests.capabilities.guards.hook_fixtures import call_in


def question(*reasons: Reason, is_protected: bool = False) -> PermissionQuestion:
    return PermissionQuestion(
        "id", "Bash", {}, "npm test", "it runs a command", is_protected=is_protected, reasons=reasons
    )


async def test_nobody_denies_and_names_the_flags_that_allow_it() -> None:
    flags = "--allowedTools 'Bash(npm test)'"

    answer = await DenyingAsker()(question(Reason("why", "not-allowed", flags=flags)))

    assert not answer.is_allowed
    assert f"starting panpan with {flags}, or with --yes for everything" in answer.feedback
    assert "it runs a command" in answer.feedback


@pytest.mark.parametrize("is_protected", [True, False])
async def test_nobody_blames_the_way_of_starting_and_not_the_user(is_protected: bool) -> None:
    answer = await DenyingAsker()(question(is_protected=is_protected))

    assert "this run asks nobody, as with -p or a pipe" in answer.feedback
    assert "on a terminal and without -p" in answer.feedback


async def test_nobody_names_no_flag_for_protected_paths() -> None:
    answer = await DenyingAsker()(question(is_protected=True))

    assert not answer.is_allowed
    assert "--" not in answer.feedback


async def test_nobody_names_every_flag_that_a_call_needs() -> None:
    asked = question(
        Reason("why", "not-allowed", flags="--allowedTools pip"),
        Reason("why", "sandbox", flags="--allow-network"),
        is_protected=True,
    )

    answer = await DenyingAsker()(asked)

    assert "starting panpan with --allowedTools pip --allow-network. They" in answer.feedback
    assert "--yes" not in answer.feedback


async def test_nobody_names_no_flag_that_answers_only_a_part() -> None:
    asked = question(Reason("why", "protected"), Reason("why", "sandbox", flags="--allow-network"), is_protected=True)

    assert "--" not in (await DenyingAsker()(asked)).feedback


async def test_yes_to_all_says_yes() -> None:
    assert (await ApprovingAsker()(question())).is_allowed


@pytest.mark.parametrize("is_person_there", [True, False])
async def test_yes_to_all_leaves_protected_paths_to_a_person(is_person_there: bool) -> None:
    async def person(question: PermissionQuestion) -> PermissionAnswer:
        return PermissionAnswer(is_allowed=True)

    asker = ApprovingAsker(person if is_person_there else None)

    assert (await asker(question(is_protected=True))).is_allowed == is_person_there


async def test_yes_to_all_omits_the_flags_it_answers() -> None:
    command = Reason("it may change things", "not-allowed", flags="--allowedTools Bash")
    network = Reason("with the network", "sandbox", flags="--allow-network")
    asked = replace(question(command, network, is_protected=True), for_person=(network,))

    answer = await ApprovingAsker()(asked)

    assert answer.reasons == (network,)
    assert "starting panpan with --allow-network. They" in answer.feedback
    assert "it may change things" not in answer.feedback


async def test_nobody_names_yes_only_where_it_answers() -> None:
    asked = question(
        Reason("why", "not-allowed", flags="--allowedTools x"), Reason("why", "sandbox", flags="--allow-outside x")
    )

    assert "starting panpan with --allowedTools x --allow-outside x. They" in (await DenyingAsker()(asked)).feedback


class _Asks(Hook):
    """Asks about each call."""

    def __init__(self, question: Ask) -> None:
        self._question = question

    async def before_tool(self, call: ToolCall) -> Decision:
        return self._question


async def test_refusal_beside_yes_names_the_remaining_reasons(tmp_path: Path) -> None:
    command = Ask(Reason("it may change things", "not-allowed", flags="--allowedTools Bash"))
    network = Ask(Reason("with the network", "sandbox", flags="--allow-network"), is_protected=True)

    refused = await permission_for(call_in(tmp_path), [_Asks(command), _Asks(network)], ApprovingAsker(), Lock())

    assert not refused.is_allowed
    assert refused.reasons == (network.reason,)
