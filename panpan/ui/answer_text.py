"""The text of a reply as it arrives, said once even where the reply is cut and comes again from its beginning."""


class AnswerText:
    """Tells what of a delta is new to the reader."""

    def __init__(self) -> None:
        self._said = ""
        """What the reply that is arriving has said so far."""
        self._known = ""
        """What a try that failed has said and the new one has not reached yet."""

    @property
    def is_catching_up(self) -> bool:
        """Whether the reply has not reached yet what the reader knows already."""
        return bool(self._known)

    def new_part(self, text: str) -> tuple[str, bool]:
        """Return what of `text` the reader does not know, and whether it starts anew because the new try differs."""
        self._said += text
        if not self._known:
            return text, False
        same = _common_length(self._known, text)
        if same < len(text) and same < len(self._known):
            self._known = ""
            return self._said, True
        self._known = self._known[same:]
        return text[same:], False

    def retry(self) -> None:
        """The reply failed and comes again."""
        self._known, self._said = self._said + self._known, ""

    def end(self) -> None:
        """The reply is whole, or will not come again."""
        self._said = self._known = ""


def _common_length(one: str, other: str) -> int:
    for index, (a, b) in enumerate(zip(one, other, strict=False)):
        if a != b:
            return index
    return min(len(one), len(other))
