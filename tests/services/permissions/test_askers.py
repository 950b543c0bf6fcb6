import pytest

from panpan.services.permissions.askers import NobodyToAsk, YesToAll
from panpan.types.permission import PermissionAnswer, PermissionQuestion, Reason


def question(*reasons: Reason, is_protected: bool = False) -> PermissionQuestion:
    return PermissionQuestion(
        "id", "Bash", {}, "npm test", "it runs a command", is_protected=is_protected, reasons=reasons
    )


async def test_nobody_says_no_and_how_the_user_can_allow_it() -> None:
    flags = "--allowedTools 'Bash(npm test)'"

    answer = await NobodyToAsk()(question(Reason("why", "not-allowed", flags=flags)))

    assert not answer.is_allowed
    assert f"starting panpan with {flags}, or with --yes for everything" in answer.feedback
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


async def test_nobody_names_every_flag_that_a_call_needs() -> None:
    asked = question(
        Reason("why", "not-allowed", flags="--allowedTools pip"),
        Reason("why", "sandbox", flags="--allow-network"),
        is_protected=True,
    )

    answer = await NobodyToAsk()(asked)

    assert "starting panpan with --allowedTools pip --allow-network. They" in answer.feedback
    assert "--yes" not in answer.feedback


async def test_nobody_names_no_flag_where_only_a_part_is_answered() -> None:
    asked = question(Reason("why", "protected"), Reason("why", "sandbox", flags="--allow-network"), is_protected=True)

    assert "--" not in (await NobodyToAsk()(asked)).feedback


async def test_yes_to_all_says_yes() -> None:
    assert (await YesToAll()(question())).is_allowed


@pytest.mark.parametrize("is_person_there", [True, False])
async def test_yes_to_all_leaves_protected_paths_to_a_person(is_person_there: bool) -> None:
    async def person(question: PermissionQuestion) -> PermissionAnswer:
        return PermissionAnswer(is_allowed=True)

    asker = YesToAll(person if is_person_there else None)

    assert (await asker(question(is_protected=True))).is_allowed == is_person_there
