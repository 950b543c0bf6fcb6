"""A letter that comes before a dialog takes keys: it may be an answer, or the first of a text.

The rule: it answers nothing, and no letter of a text is lost. So it is held until the next key tells what it was: the
same letter again is an answer, another one shows that both are text, and any other key means that it was nothing.
"""


def is_letter(key: str) -> bool:
    """Return whether a key is what it types, and not the name of one that does something."""
    return len(key) == 1 and key.isprintable()


class EarlyLetter:
    """Holds one letter, as often as it was pressed."""

    def __init__(self) -> None:
        self._held = ""

    @property
    def letter(self) -> str:
        """The one that is held; empty where none is."""
        return self._held[:1]

    def hold(self, key: str) -> str:
        """Hold a letter; return what is text after all, since another one came before."""
        held = self._held
        text = self.let_go(key)
        if not text:
            self._held = held + key
        return text

    def let_go(self, key: str) -> str:
        """Hold nothing any more, since a key comes; return what is text after all, that key included."""
        held = self.take()
        return held + key if held and is_letter(key) and key != held[0] else ""

    def take(self) -> str:
        """Hold nothing any more, and return what was held."""
        held, self._held = self._held, ""
        return held
