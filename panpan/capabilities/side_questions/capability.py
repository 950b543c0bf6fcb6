"""A question to the model with the conversation so far, of which nothing is kept."""

from collections.abc import Iterable, Sequence
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path

from panpan.core.conversation import Conversation
from panpan.errors import ConfigError, SessionLogError
from panpan.session.budget.budgeted_model import BudgetedModel
from panpan.session.capability import Capability
from panpan.session.command import Command, Terminal, say
from panpan.types.messages import AssistantMessage, Message, UserMessage

MAX_OUTPUT_TOKENS = 8_000
"""Most tokens of an answer, including the thinking of some models."""


class SideQuestions(Capability):
    """Asks the session's model beside the conversation, also while a turn runs."""

    name = "side_questions"

    def services(self) -> Iterable[object]:
        return (self,)

    @classmethod
    def commands(cls) -> Iterable[Command]:
        return BTW_COMMANDS

    async def answer(self, question: str) -> AssistantMessage:
        """Return the model's reply; what it costs counts in the session.

        Raises:
            BudgetError: The budget cannot pay for it.
            ProviderError: The model could not be asked.
        """
        agent, conversation = self.session.main, self.session.conversation
        messages = said_so_far(conversation)
        for hook in agent.hooks:  # so that it begins like the last request, and hits the provider's cache
            messages = await hook.transform_messages(messages)
        prompt = Path(__file__).with_name("btw.md").read_text(encoding="utf-8")
        asked = (*messages, UserMessage.of(f"{prompt}\n{question}"))
        request = replace(conversation.request(), messages=asked, max_output_tokens=MAX_OUTPUT_TOKENS)
        reply: AssistantMessage | None = None
        async with aclosing(BudgetedModel(agent.model.llm, agent.budget).stream(request)) as events:
            async for event in events:
                reply = event if isinstance(event, AssistantMessage) else reply
        if reply is None:
            raise ConfigError("the model did not answer; ask again")
        conversation.side_calls.append(reply)
        try:
            self.session.recorder.note_side_calls()
        except SessionLogError as error:
            self.session.warn(str(error))
        return reply


def said_so_far(conversation: Conversation) -> Sequence[Message]:
    """Return the messages that a request may hold now: without a reply whose calls still run."""
    sent = conversation.sent
    if not conversation.open_tool_uses:
        return tuple(sent)
    return tuple(sent[: max(at for at, message in enumerate(sent) if isinstance(message, AssistantMessage))])


async def _btw(terminal: Terminal, question: str) -> None:
    if not question:
        say(terminal, "/btw QUESTION asks something beside the conversation, which stays as it is")
        return
    await terminal.session.prepare_message(question)  # it may not be sent
    reply = await terminal.session[SideQuestions].answer(question)
    say(terminal, f"btw: {reply.text.strip() or 'the model wanted to use a tool; ask in other words'}", "dim")
    cost = "" if reply.cost_usd is None else f" · ${reply.cost_usd:.4f}"
    say(terminal, f"beside the conversation{cost}", "dim")


BTW_COMMANDS: Sequence[Command] = (
    Command(
        "btw",
        "Ask something without adding it to the conversation",
        _btw,
        arguments="question",
        needs_arguments=True,
        is_immediate=True,
    ),
)
