"""What stands within a paragraph of Markdown, as text in colours: emphasis, code, links with their addresses."""

from collections.abc import Sequence

from markdown_it.token import Token

from panpan.faces.terminal.screen.theme import Role, Theme
from panpan.system.text.terminal_text import clean_for_terminal

_STYLES: dict[str, Role] = {"strong": "strong", "em": "emphasis", "s": "struck", "link": "link"}


def inline_text(tokens: Sequence[Token], theme: Theme, role: Role | None = None) -> str:
    """Return the text of `tokens`; a line that the author broke on purpose is broken by a newline.

    Args:
        tokens: The children of an inline token.
        theme: How it looks.
        role: What all of it is, such as a heading.
    """
    line = _Line(theme, role)
    for token in tokens:
        line.add(token)
    return "".join(line.pieces)


class _Line:
    def __init__(self, theme: Theme, role: Role | None) -> None:
        self.pieces: list[str] = []
        self._theme = theme
        self._styles: list[Role] = [role] if role else []
        self._links: list[tuple[str, int]] = []
        """Addresses of the links that are open, and how many pieces were there before."""

    def add(self, token: Token) -> None:
        match token.type:
            case "softbreak":
                self.pieces.append(" ")
            case "hardbreak":
                self.pieces.append("\n")
            case "code_inline":
                marks = "" if self._theme.has_colour else "`"
                self._paint(f"{marks}{token.content}{marks}", "code")
            case "image":
                self._paint(f"[image: {token.content}]")
                self._address(str(token.attrGet("src") or ""))
            case "link_open":
                self._links.append((str(token.attrGet("href") or ""), len(self.pieces)))
                self._styles.append("link")
            case "link_close":
                self._styles.pop()
                address, before = self._links.pop()
                if not _says(self.pieces[before:], address):
                    self._address(address)
            case kind if kind.removesuffix("_open") in _STYLES:
                self._styles.append(_STYLES[kind.removesuffix("_open")])
            case kind if kind.removesuffix("_close") in _STYLES:
                self._styles.pop()
            case _:
                self._paint(token.content)

    def _address(self, address: str) -> None:
        if address:
            self.pieces.append(" ")
            self.pieces.append(self._theme.paint("dim", f"({_harmless(address)})"))

    def _paint(self, text: str, role: Role | None = None) -> None:
        painted = _harmless(text)
        for style in [*([role] if role else []), *reversed(self._styles)]:
            painted = self._theme.paint(style, painted)
        self.pieces.append(painted)


def _says(pieces: Sequence[str], address: str) -> bool:
    """Return whether the text of a link is its address."""
    return len(pieces) == 1 and address.removeprefix("mailto:") in pieces[0]


def _harmless(text: str) -> str:
    """Return text clean once more: `&#x202e;` was spelled out until it was parsed."""
    return clean_for_terminal(text).replace("\n", " ").replace("\t", " ")
