from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from panpan.models.wire import UserSide, WireHistory
from panpan.types.content import TextBlock
from panpan.types.messages import AssistantMessage, Message, SystemReminder, UserMessage


class Encoders:
    """Count what they encode; a reply or a user side that says nothing cannot be sent."""

    def __init__(self) -> None:
        self.encoded: list[str] = []

    def reply(self, message: AssistantMessage) -> bytes | None:
        self.encoded.append(message.text)
        return f"<{message.text}>".encode() if message.text else None

    def user_side(self, messages: Sequence[UserSide]) -> bytes | None:
        text = "+".join(message.text for message in messages if message.text)
        self.encoded.append(text)
        return text.encode() if text else None

    def history(self) -> WireHistory:
        return WireHistory(self.reply, self.user_side)


def user(text: str) -> UserMessage:
    return UserMessage.of(text)


def reply(text: str) -> AssistantMessage:
    return AssistantMessage(content=(TextBlock(text=text),))


def wire(history: WireHistory, messages: Sequence[Message]) -> str:
    return " ".join(group.data.decode() for group in history.groups(messages))


def test_wire_history_groups_messages_between_replies() -> None:
    messages = [user("a"), SystemReminder(text="b"), reply("R"), user("c"), SystemReminder(text="d")]

    groups = Encoders().history().groups(messages)

    assert [(group.data, group.is_reply) for group in groups] == [(b"a+b", False), (b"<R>", True), (b"c+d", False)]


def test_wire_history_encodes_each_message_once() -> None:
    encoders = Encoders()
    history = encoders.history()
    messages: list[Message] = []
    for number in range(20):
        messages.append(user(f"u{number}"))
        history.groups(messages)
        history.groups(messages)  # as after a request that failed
        messages.append(reply(f"r{number}"))

    assert encoders.encoded == [text for number in range(20) for text in (f"u{number}", f"r{number}")][:-1]


def test_wire_history_skips_an_empty_reply_and_merges_groups() -> None:
    history = Encoders().history()
    messages: list[Message] = [user("a"), reply("R"), user("b")]
    assert wire(history, messages) == "a <R> b"

    messages += [reply(""), user("c")]
    assert wire(history, messages) == "a <R> b+c"

    messages += [reply("S"), user("d")]
    assert wire(history, messages) == "a <R> b+c <S> d"


def test_wire_history_encodes_a_rewritten_history_again() -> None:
    history = Encoders().history()
    messages: list[Message] = [user("a"), reply("R"), user("b"), reply("S"), user("c")]
    wire(history, messages)

    compacted = [user("summary"), *messages[3:]]

    assert wire(history, compacted) == "summary <S> c"
    assert wire(history, messages[:3]) == "a <R> b"


MESSAGES = st.lists(st.sampled_from(["u:", "u:a", "u:b", "r:", "r:A", "r:B"]), max_size=12)


@given(st.lists(MESSAGES, max_size=4), st.lists(st.integers(0, 12), max_size=6))
def test_wire_history_cache_never_shows(additions: list[list[str]], cuts: list[int]) -> None:
    history = Encoders().history()
    messages: list[Message] = []
    for number, kinds in enumerate(additions):
        messages += [user(text[2:]) if text.startswith("u") else reply(text[2:]) for text in kinds]
        if number < len(cuts):
            messages = messages[: len(messages) - cuts[number]] or messages  # rewound, or not
        assert wire(history, messages) == wire(Encoders().history(), messages)
