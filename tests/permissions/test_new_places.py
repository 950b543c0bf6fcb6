from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from panpan.capabilities.shell.bash import BashInput, BashTool
from panpan.core.conversation import Conversation
from panpan.core.hooks import ToolCall
from panpan.permissions.new_protected_places import NewProtectedPlaces
from panpan.system.files.paths import PathResolver
from panpan.system.sandbox.command_sandbox import CommandSandbox
from panpan.system.sandbox.profile import MAX_ENTRIES
from panpan.types.events import Output
from panpan.types.permission import UserAnswer, UserAsker, UserQuestion
from tests.fakes.context import context_in
from tests.fakes.sandboxes import works


class User:
    """Answers each question in the same way."""

    def __init__(self, answer: str) -> None:
        self.asked: list[UserQuestion] = []
        self._answer = answer

    async def __call__(self, questions: Sequence[UserQuestion]) -> Sequence[UserAnswer]:
        self.asked += questions
        return [UserAnswer((self._answer,))]


class Workspace:
    """A folder in which a command runs, as the hook sees it."""

    def __init__(self, place: Path, user: UserAsker | None = None) -> None:
        self.root = place / "work"
        self.root.mkdir()
        self.aside = place / "home" / "aside"
        self.aside.parent.mkdir(mode=0o700)
        self.warned: list[str] = []
        self.hook = NewProtectedPlaces(self.aside, user, self.warned.append)
        self.approved: frozenset[Path] = frozenset()
        self.sandbox = CommandSandbox(is_on=True, find=works)

    async def call(self, **arguments: object) -> ToolCall:
        ctx = context_in(self.root, tool_use_id="c")
        ctx = replace(ctx, sandbox=self.sandbox, paths=ctx.paths.approving(self.approved))
        args = BashInput.model_validate({"command": "make", **arguments})
        return await ToolCall.of("c", BashTool(), args, {}, ctx)

    def make(self, *names: str) -> None:
        for name in names:
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            (self.root / name).write_text("x")

    async def told(self, *names: str, **arguments: object) -> str:
        """Return the sentences that are told when a command makes these files."""
        call = await self.call(**arguments)
        await self.hook.before_effect(call)
        self.make(*names)
        return (await self.hook.after_tool(call, Output("made"))).text


@pytest.mark.parametrize(
    "name",
    [".envrc", ".mcp.json", ".vscode/tasks.json", "sub/.git/config", ".github/workflows/x.yml", "sitecustomize.py"],
)
async def test_new_protected_place_is_reported_to_user_and_model(tmp_path: Path, name: str) -> None:
    work = Workspace(tmp_path)

    told = await work.told("a.py", name)

    place = name.replace("/config", "").replace("/tasks.json", "").replace("/workflows/x.yml", "")
    assert place in told
    assert place in work.warned[0]
    assert "left where they are" in work.warned[0]
    assert (work.root / name).exists()


async def test_end_of_another_agents_turn_loses_no_scan(tmp_path: Path) -> None:
    work = Workspace(tmp_path)
    other = work.hook.for_agent()
    call = await work.call()
    await work.hook.before_effect(call)

    await other.turn_ended(Conversation())
    work.make(".envrc")

    assert ".envrc" in (await work.hook.after_tool(call, Output("made"))).text


async def test_old_or_unprotected_place_is_not_reported(tmp_path: Path) -> None:
    work = Workspace(tmp_path)
    work.make(".envrc")
    (work.root / ".vscode").mkdir()

    assert await work.told("a.py", "node_modules/x/.travis.yml", "ca.pem") == "made"
    assert not work.warned


async def test_place_made_by_a_failed_attempt_is_reported_later(tmp_path: Path) -> None:
    work = Workspace(tmp_path)
    call = await work.call()

    await work.hook.before_effect(call)
    work.make(".envrc")
    await work.hook.before_effect(call)  # it runs again, with the network

    assert ".envrc" in (await work.hook.after_tool(call, Output("made"))).text


async def test_folder_remade_under_an_old_name_is_reported(tmp_path: Path) -> None:
    work = Workspace(tmp_path)
    work.make("sub/.git/config")
    call = await work.call()

    await work.hook.before_effect(call)
    (work.root / "sub").rename(work.root / "old")
    work.make("sub/.git/config")
    told = (await work.hook.after_tool(call, Output("made"))).text

    assert "sub/.git" in told
    assert "old/.git" in told


@pytest.mark.parametrize("old", ["many/deep/.envrc", "many/deep/.vscode/x", "other/a/b/.npmrc", "other/.env.old"])
async def test_partial_look_reports_nothing_it_did_not_reach(tmp_path: Path, old: str) -> None:
    user = User("Put aside")
    work = Workspace(tmp_path, user)
    work.make(*(f"{folder}/{number}" for folder in ("many", "other") for number in range(MAX_ENTRIES)), old)
    call = await work.call()

    await work.hook.before_effect(call)
    for path in work.root.glob("*/[0-9]*"):
        path.unlink()
    told = (await work.hook.after_tool(call, Output("cleaned"))).text

    assert told == "cleaned"
    assert not user.asked
    assert (work.root / old).exists()


async def test_partial_look_within_a_folder_does_not_report_its_rest(tmp_path: Path) -> None:
    work = Workspace(tmp_path)
    work.make(*(f".env.{number}" for number in range(MAX_ENTRIES + 500)))
    call = await work.call()

    await work.hook.before_effect(call)
    for number in range(600):
        (work.root / f".env.{number}").unlink()

    assert (await work.hook.after_tool(call, Output("cleaned"))).text == "cleaned"


@pytest.mark.parametrize("name", [".envrc", ".vscode/tasks.json", "looked-at/.npmrc", "looked-at/fresh/.npmrc"])
async def test_partial_look_still_reports_where_it_looked(tmp_path: Path, name: str) -> None:
    work = Workspace(tmp_path)
    work.make("looked-at/x", *(f"z/z/many/{number}" for number in range(MAX_ENTRIES)))

    assert "protected files or folders appeared" in await work.told(name)


@pytest.mark.parametrize("name", [".envrc", ".vscode/tasks.json"])
async def test_crowded_root_reports_new_places_of_fixed_names(tmp_path: Path, name: str) -> None:
    work = Workspace(tmp_path)
    work.make(*(str(number) for number in range(MAX_ENTRIES + 1)))

    assert "protected files or folders appeared" in await work.told(name)


async def test_folder_added_during_a_background_command_is_old(tmp_path: Path) -> None:
    work = Workspace(tmp_path)
    added = tmp_path / "added"
    added.mkdir()
    (added / ".envrc").write_text("mine")
    await work.told(run_in_background=True)
    call = await work.call()
    call.context.paths.add_root(added)

    await work.hook.before_effect(call)

    assert (await work.hook.after_tool(call, Output("made"))).text == "made"


async def test_approved_place_is_not_reported(tmp_path: Path) -> None:
    work = Workspace(tmp_path)
    work.approved = frozenset({work.root / ".envrc"})

    assert await work.told(".envrc") == "made"


async def test_command_outside_the_sandbox_is_not_checked(tmp_path: Path) -> None:
    assert await Workspace(tmp_path).told(".envrc", sandbox="off") == "made"


async def test_new_places_are_moved_aside_on_request(tmp_path: Path) -> None:
    user = User("Put aside")
    work = Workspace(tmp_path, user)

    told = await work.told(".envrc", "sub/.vscode/tasks.json")

    assert ".envrc" in user.asked[0].question
    assert str(work.aside) in told
    assert not (work.root / ".envrc").exists()
    assert not (work.root / "sub" / ".vscode").exists()
    assert sorted(path.name for path in work.aside.iterdir()) == ["1-.envrc", "2-.vscode"]


async def test_new_places_stay_if_the_user_keeps_them(tmp_path: Path) -> None:
    work = Workspace(tmp_path, User("Keep"))

    assert "left where they are, after the user was asked" in await work.told(".envrc")
    assert work.warned[0].endswith("they were left where they are")
    assert (work.root / ".envrc").exists()


@pytest.mark.parametrize("answers", [None, []])
async def test_question_without_an_answer_moves_nothing(tmp_path: Path, answers: Sequence[UserAnswer] | None) -> None:
    async def decline(questions: Sequence[UserQuestion]) -> Sequence[UserAnswer] | None:
        return answers

    work = Workspace(tmp_path, decline)

    assert (await work.told(".envrc")).startswith("made\n[while commands ran")
    assert work.warned[0].endswith("; without an answer, they were left where they are")
    assert (work.root / ".envrc").exists()


async def test_users_own_words_reach_the_model_and_move_nothing(tmp_path: Path) -> None:
    async def say(questions: Sequence[UserQuestion]) -> Sequence[UserAnswer]:
        return [UserAnswer(text="Put aside?\x1b why")]

    work = Workspace(tmp_path, say)

    assert "where they are, after the user was asked and said: Put aside?\\x1b why. Tell" in await work.told(".envrc")
    assert (work.root / ".envrc").exists()


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_interrupt_at_the_question_moves_nothing_and_is_reported(tmp_path: Path, backend: str) -> None:
    async def main() -> None:
        with anyio.CancelScope() as scope:

            async def interrupt(questions: Sequence[UserQuestion]) -> Sequence[UserAnswer]:
                scope.cancel()
                await anyio.sleep_forever()
                raise AssertionError

            work = Workspace(tmp_path, interrupt)
            await work.told(".envrc")

        assert work.warned[0].endswith("; they were left where they are")
        assert (work.root / ".envrc").exists()

    anyio.run(main, backend=backend)


async def test_place_is_not_moved_aside_through_a_new_link(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / ".envrc").write_text("mine")
    work = Workspace(tmp_path)

    async def swap(questions: Sequence[UserQuestion]) -> Sequence[UserAnswer]:
        (work.root / "sub").rename(work.root / "old")
        (work.root / "sub").symlink_to(outside)
        return [UserAnswer(("Put aside",))]

    work.hook = NewProtectedPlaces(work.aside, swap, work.warned.append)

    assert "but for" in await work.told("sub/.envrc")
    assert (outside / ".envrc").read_text() == "mine"


async def test_place_made_in_the_background_is_reported_next(tmp_path: Path) -> None:
    work = Workspace(tmp_path)
    assert await work.told(run_in_background=True) == "made"

    work.make(".envrc")

    assert ".envrc" in await work.told()
    assert await work.told() == "made"


def clone(folder: Path) -> Path:
    """Make what `git clone` leaves, and return its git folder."""
    git = folder / ".git"
    for name in ("objects", "refs", "hooks"):
        (git / name).mkdir(parents=True)
    (git / "HEAD").write_text("ref: refs/heads/main\n")
    (git / "config").write_text('[core]\n\tbare = false\n[remote "origin"]\n\turl = https://example.org/x.git\n')
    (git / "hooks" / "pre-commit.sample").write_text("exit 1")
    return git


async def test_cloned_repository_is_the_models(tmp_path: Path) -> None:
    work = Workspace(tmp_path, user := User("Put aside"))
    call = await work.call()

    await work.hook.before_effect(call)
    git = clone(work.root / "sub")
    await work.hook.after_tool(call, Output("made"))

    assert work.sandbox.repositories == {git}
    assert not user.asked


@pytest.mark.parametrize("name", ["commondir", "modules/x/config", "hooks/pre-commit", "config"])
async def test_change_that_git_would_run_is_reported_and_closes_it(tmp_path: Path, name: str) -> None:
    work = Workspace(tmp_path)
    call = await work.call()
    await work.hook.before_effect(call)
    git = clone(work.root / "sub")
    await work.hook.after_tool(call, Output("made"))
    (git / "hooks" / "post-merge.sample").touch()
    assert await work.told() == "made"

    (git / name).unlink(missing_ok=True)
    told = await work.told(f"sub/.git/{name}")  # as by a process that was left behind

    assert f"sub/.git/{name.partition('/')[0]}" in told
    assert not work.sandbox.repositories


async def test_renamed_repository_stays_the_users(tmp_path: Path) -> None:
    work = Workspace(tmp_path)
    clone(work.root / "sub")
    call = await work.call()

    await work.hook.before_effect(call)
    (work.root / "sub").rename(work.root / "mine")
    told = (await work.hook.after_tool(call, Output("made"))).text

    assert "mine/.git" in told
    assert not work.sandbox.repositories


async def test_temporary_files_of_package_managers_are_not_reported(tmp_path: Path) -> None:
    work = Workspace(tmp_path)
    work.sandbox.temporary.mkdir()
    call = await work.call()
    call = replace(call, context=replace(call.context, paths=with_root(call.context.paths, work.sandbox.temporary)))

    await work.hook.before_effect(call)
    (work.sandbox.temporary / ".git").write_text("of the cache")
    told = (await work.hook.after_tool(call, Output("made"))).text
    await work.sandbox.aclose()

    assert told == "made"


def with_root(paths: PathResolver, root: Path) -> PathResolver:
    return PathResolver(paths.root, extra_roots=[root])
