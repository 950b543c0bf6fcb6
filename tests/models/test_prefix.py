from collections.abc import Sequence

from panpan.models.wire import MAX_CONVERSATIONS, Prefix, WireHistory
from panpan.types.content import TextBlock
from panpan.types.llm import ModelOptions, ModelRequest, ToolDefinition
from panpan.types.messages import AssistantMessage, Message, UserMessage

OPTIONS = ModelOptions("m", 100)


class Work:
    """A `Prefix` that keeps what it had to encode."""

    def __init__(self) -> None:
        self.heads: list[str] = []
        self.replies: list[str] = []
        self.prefix = Prefix(encode_head=self.head, new_history=self.history)

    def head(self, options: ModelOptions, system: str, tools: Sequence[ToolDefinition], *, is_stream: bool) -> bytes:
        self.heads.append(f"{options.model} {system} {len(tools)} {is_stream}")
        return self.heads[-1].encode()

    def history(self, model: str) -> WireHistory:
        def reply(message: AssistantMessage) -> bytes:
            self.replies.append(f"{model} {message.text}")
            return self.replies[-1].encode()

        return WireHistory(reply, lambda messages: b"u")


def talk(name: str) -> list[Message]:
    return [UserMessage.of(name), AssistantMessage(content=(TextBlock(text=name),)), UserMessage.of("more")]


def test_prefix_encodes_parallel_conversations_once_each() -> None:
    work = Work()
    tools = (ToolDefinition("Read", "", {}),)
    first, second = ModelRequest("sys", tools, talk("a")), ModelRequest("sub", (), talk("b"))

    for _ in range(3):
        assert work.prefix.of(first, OPTIONS, is_stream=True)[0] == b"m sys 1 True"
        head, groups = work.prefix.of(second, OPTIONS, is_stream=True)

    assert (head, [group.data for group in groups]) == (b"m sub 0 True", [b"u", b"m b", b"u"])
    assert (work.heads, work.replies) == (["m sys 1 True", "m sub 0 True"], ["m a", "m b"])


def test_prefix_encodes_again_for_another_model_or_options() -> None:
    work = Work()
    request = ModelRequest("sys", (), talk("a"))

    work.prefix.of(request, OPTIONS, is_stream=True)
    work.prefix.of(request, OPTIONS, is_stream=False)
    work.prefix.of(request, ModelOptions("n", 100), is_stream=True)
    work.prefix.of(ModelRequest("changed", (), request.messages), OPTIONS, is_stream=True)

    assert work.heads == ["m sys 0 True", "m sys 0 False", "n sys 0 True", "m changed 0 True"]
    assert work.replies == ["m a", "n a"]


def test_prefix_cache_is_bounded() -> None:
    work = Work()
    requests = [ModelRequest(f"s{n}", (), talk(str(n))) for n in range(MAX_CONVERSATIONS + 1)]
    for request in requests:
        work.prefix.of(request, OPTIONS, is_stream=True)
    work.prefix.of(requests[1], OPTIONS, is_stream=True)
    assert work.replies.count("m 1") == 1

    work.prefix.of(requests[0], OPTIONS, is_stream=True)

    assert work.replies.count("m 0") == 2
