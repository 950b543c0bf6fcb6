"""What has arrived of a reply that is cut short, so that nothing is lost that the user has read."""

from panpan.types.content import TextBlock
from panpan.types.events import BlockStarted, Event, ReplyStarted, TextDelta
from panpan.types.messages import AssistantMessage


class PartialReply:
    """The text of the reply that is arriving."""

    def __init__(self) -> None:
        self._texts: list[str] = []

    def follow(self, event: Event) -> None:
        """Note what an event adds to the reply, or that it begins or is whole."""
        match event:
            case TextDelta(text=text):
                self._texts.append(text)
            case BlockStarted(kind="text") if self._texts:
                self._texts.append("\n")
            case ReplyStarted() | AssistantMessage():
                self._texts.clear()
            case _:
                pass

    def message(self, model: str) -> AssistantMessage | None:
        """Return the text so far as a reply that was interrupted, or None where there is none."""
        text = "".join(self._texts)
        if not text.strip():
            return None
        return AssistantMessage(content=(TextBlock(text=text),), model=model, stop_reason="interrupted")
