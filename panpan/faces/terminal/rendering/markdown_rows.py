"""A whole text as Markdown, where nothing streams."""

from panpan.faces.terminal.screen.theme import Theme


def markdown_rows(text: str, width: int, theme: Theme) -> list[str]:
    """Return the rows of a text of the model.

    Args:
        text: Markdown; nothing in it drives the terminal.
        width: Cells of a row.
        theme: How it looks.
    """
    from panpan.faces.terminal.rendering.markdown_stream import MarkdownStream  # not needed to take the first key

    stream = MarkdownStream(width, theme)
    return [*stream.feed(text), *stream.finish()]
