"""Skills that a conversation holds: they stay when it is compacted, within bounds, and end with their turn."""

from collections.abc import Sequence

from panpan.capabilities.compaction.auto_compaction import Compactor, Limits
from panpan.capabilities.skills.following import FollowedSkills
from panpan.capabilities.skills.loading import LOADED, loaded_skills
from panpan.types.content import TextBlock, ToolResultBlock, ToolUseBlock, for_model
from panpan.types.messages import AssistantMessage, Message, SystemReminder, ToolResultMessage, UserMessage
from tests.capabilities.compaction.conversations import SUMMARY, conversation_of, talking
from tests.fakes.scripted_llm import ScriptedLLM, say


def loaded(name: str, body: str = "Do it.") -> str:
    return f'<skill name="{name}">\n{body}\n</skill>'


def called(name: str, text: str, *, tool: str = "Skill", is_error: bool = False) -> Sequence[Message]:
    use = ToolUseBlock(id=f"use-{name}", name=tool, input={"skill": name})
    result = ToolResultBlock(tool_use_id=use.id, content=(TextBlock(text=text),), is_error=is_error)
    return AssistantMessage(content=(use,)), ToolResultMessage(result=result)


def typed(name: str) -> UserMessage:
    return UserMessage(content=(TextBlock(text=f"/{name}"), for_model(loaded(name))))


def hook(messages: Sequence[Message]) -> FollowedSkills:
    return FollowedSkills(lambda: messages)


def test_skills_are_known_from_calls_and_commands_alone() -> None:
    messages = [
        *called("pdf", loaded("pdf")),
        *called("gone", loaded("gone"), is_error=True),
        *called("faked", loaded("faked"), tool="Read"),
        typed("fix"),
        UserMessage.of(loaded("pasted")),
        SystemReminder(text=loaded("old"), cause=f"{LOADED}old"),
    ]

    assert [name for name, _ in loaded_skills(messages)] == ["pdf", "fix", "old"]


async def test_compacted_conversation_keeps_skills_and_their_list() -> None:
    listing = SystemReminder(text="- pdf: Fills forms", cause="skill:list:1")
    messages = [*talking(0), listing, *called("pdf", loaded("pdf")), *(m for n in range(1, 12) for m in talking(n))]
    conversation = conversation_of(messages)

    compaction = await Compactor(lambda: [hook(messages)]).compaction(
        conversation, ScriptedLLM(say(SUMMARY)), Limits(10_000, 2_500), "auto"
    )

    assert compaction is not None
    kept = {one.cause: one.text for one in compaction.added}
    assert kept["skill:list:1"] == "- pdf: Fills forms"
    assert kept["skill:loaded:pdf"] == loaded("pdf")


async def test_newest_skills_stay_within_bounds() -> None:
    messages = [message for number in range(9) for message in called(f"s{number}", loaded(f"s{number}", "x" * 30_000))]

    pinned = await hook(messages).pinned_reminders()

    assert [one.cause for one in pinned] == [f"skill:loaded:s{number}" for number in (5, 6, 7, 8)]
    assert sum(len(one.text) for one in pinned) <= 100_000
    assert all(one.text.endswith("load it again") for one in pinned)
