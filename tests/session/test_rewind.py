"""Going back to an earlier message: the conversation is what it was then, and the log loses nothing."""

from collections.abc import Sequence
from contextlib import aclosing
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from panpan.core.conversation import Conversation
from panpan.core.hooks import Hook
from panpan.session.session import Session
from panpan.types.messages import UserMessage
from tests.fakes.scripted_llm import ScriptedLLM, call, say
from tests.fakes.session import log_path, recorded, session_in
from tests.fakes.tools import looking


async def send(session: Session, *prompts: str) -> None:
    for prompt in prompts:
        async with aclosing(session.submit(prompt)) as events:
            async for _ in events:
                pass


def prompts_of(session: Session) -> Sequence[UserMessage]:
    return [message for message in session.conversation.messages if isinstance(message, UserMessage)]


async def test_rewind_restores_the_conversation_before_the_message(tmp_path: Path) -> None:
    llm = ScriptedLLM(say("1"), call(("a", "Look", {})), say("2"), say("3"), say("other"))
    async with session_in(tmp_path, llm, looking()) as session:
        await send(session, "one", "two", "three")
        second = prompts_of(session)[1]

        await session.rewind(second.uuid)
        await send(session, "another two")

        assert [message.text for message in prompts_of(session)] == ["one", "another two"]
        assert llm.histories[-1][:2] == llm.histories[1][:2]  # what was said before "two", and nothing of it
        assert len(llm.histories[-1]) == 3


async def test_rewind_only_appends_to_the_log(tmp_path: Path) -> None:
    llm = ScriptedLLM(say("1"), say("2"), say("other"))
    async with session_in(tmp_path, llm) as session:
        await send(session, "one", "two")
        before = log_path(tmp_path).read_bytes()

        await session.rewind(prompts_of(session)[1].uuid)
        assert recorded(tmp_path) == session.conversation.messages  # a crash right now would lose nothing of it
        await send(session, "another two")
        expected = list(session.conversation.messages)

    assert log_path(tmp_path).read_bytes().startswith(before)
    assert recorded(tmp_path) == expected


async def test_rewind_to_the_first_message_leaves_nothing(tmp_path: Path) -> None:
    llm = ScriptedLLM(say("1"), say("other"))
    async with session_in(tmp_path, llm) as session:
        await send(session, "one")
        await session.rewind(prompts_of(session)[0].uuid)
        assert (session.conversation.messages, recorded(tmp_path)) == ([], [])
        await send(session, "anew")

    assert [message.text for message in recorded(tmp_path) if isinstance(message, UserMessage)] == ["anew"]


async def test_rewind_keeps_title_and_mode(tmp_path: Path) -> None:
    async with session_in(tmp_path, ScriptedLLM(say("1"), say("2"))) as session:
        await send(session, "one", "two")
        session.rename("A name")
        await session.rewind(prompts_of(session)[1].uuid)
        assert session.title == "A name"

    async with session_in(tmp_path, ScriptedLLM()) as session:
        assert (session.title, [message.text for message in prompts_of(session)]) == ("A name", ["one"])


async def test_rewind_forgets_seen_files_and_notifies_hooks(tmp_path: Path) -> None:
    class Hears(Hook):
        heard = 0

        async def history_replaced(self, conversation: Conversation) -> None:
            self.heard += 1

    hook = Hears()
    async with session_in(tmp_path, ScriptedLLM(say("1")), hooks=[hook]) as session:
        await send(session, "one")
        seen_files = session.agent.context.seen_files
        seen_files.add(tmp_path / "a", b"a")
        await session.rewind(prompts_of(session)[0].uuid)

        assert (seen_files.digest(tmp_path / "a"), hook.heard) == (None, 1)


async def test_rewind_to_an_unknown_message_changes_nothing(tmp_path: Path) -> None:
    async with session_in(tmp_path, ScriptedLLM(say("1"))) as session:
        await send(session, "one")
        messages = list(session.conversation.messages)
        with pytest.raises(ValueError, match="no message nowhere"):
            await session.rewind("nowhere")
        assert session.conversation.messages == messages == recorded(tmp_path)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.one_of(st.none(), st.integers(0, 5)), min_size=1, max_size=12))
def test_rewind_keeps_live_and_recorded_conversation_equal(steps: Sequence[int | None]) -> None:
    """None says something; a number goes back to the prompt of that number, where there is one."""

    async def main(root: Path) -> None:
        llm = ScriptedLLM(*(say(f"answer {number}") for number in range(len(steps))))
        async with session_in(root, llm) as session:
            for number, step in enumerate(steps):
                prompts = prompts_of(session)
                if step is None:
                    await send(session, f"prompt {number}")
                elif step < len(prompts):
                    await session.rewind(prompts[step].uuid)
                    assert prompts_of(session) == prompts[:step]
                assert not log_path(root).exists() or recorded(root) == session.conversation.messages

    with TemporaryDirectory() as folder:
        root = Path(folder, "work")
        root.mkdir()
        anyio.run(main, root)
