r"""How a prompt gets a second line by a backslash before Enter; Ctrl+J is a key, and so is Shift+Enter."""


def with_line_break(text: str, cursor: int) -> tuple[str, int] | None:
    r"""Return text and cursor after Enter behind a backslash, which becomes a line break; None where Enter is Enter.

    Two backslashes are one that is meant, and no line break.

    Args:
        text: What is typed.
        cursor: Where the caret is, in characters.
    """
    before = text[:cursor]
    backslashes = len(before) - len(before.rstrip("\\"))
    if backslashes % 2 == 0:
        return None
    return f"{before[:-1]}\n{text[cursor:]}", cursor
