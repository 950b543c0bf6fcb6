from dataclasses import replace

import pytest

from panpan.services.permissions.askers import NobodyToAsk, YesToAll
from panpan.types.permission import PermissionAnswer, PermissionQuestion, Reason


def question(*, rule: str | None = None, is_protected: bool = False) -> PermissionQuestion:
    return PermissionQuestion("id", "Bash", {}, "npm test", "it runs a command", rule, is_protected)


async def test_nobody_says_no_and_how_the_user_can_allow_it() -> None:
    answer = await NobodyToAsk()(question(rule="Bash(npm test)"))

    assert not answer.is_allowed
    assert "--allowedTools 'Bash(npm test)'" in answer.feedback
    assert "it runs a command" in answer.feedback


@pytest.mark.parametrize("is_protected", [True, False])
async def test_nobody_says_that_it_is_the_way_of_starting_and_not_an_absent_user(is_protected: bool) -> None:
    answer = await NobodyToAsk()(question(is_protected=is_protected))

    assert "this run asks nobody, as with -p or a pipe" in answer.feedback
    assert "on a terminal and without -p" in answer.feedback


async def test_nobody_names_no_flag_for_what_no_flag_opens() -> None:
    answer = await NobodyToAsk()(question(is_protected=True))

    assert not answer.is_allowed
    assert "--" not in answer.feedback


async def test_of_what_leaves_the_sandbox_the_settings_are_named_that_let_it() -> None:
    asked = replace(question(is_protected=True), reasons=(Reason("it runs with the network", "sandbox"),))

    answer = await NobodyToAsk()(asked)

    assert "sandbox.domains" in answer.feedback


async def test_yes_to_all_says_yes() -> None:
    assert (await YesToAll()(question())).is_allowed


@pytest.mark.parametrize("is_person_there", [True, False])
async def test_yes_to_all_leaves_protected_paths_to_a_person(is_person_there: bool) -> None:
    async def person(question: PermissionQuestion) -> PermissionAnswer:
        return PermissionAnswer(is_allowed=True)

    asker = YesToAll(person if is_person_there else None)

    assert (await asker(question(is_protected=True))).is_allowed == is_person_there
