from pathlib import Path

from panpan.capabilities.guards.size_limits import MAX_ENCODED_BYTES, MAX_TEXT_CHARS, ResultSize
from panpan.types.content import Base64Source, ImageBlock, SummaryDisplay, TextBlock
from panpan.types.events import Output
from tests.capabilities.guards.hook_fixtures import call_in


def image(size: int) -> ImageBlock:
    return ImageBlock(source=Base64Source(media_type="image/png", data="A" * size))


async def test_result_that_fits_is_unchanged(tmp_path: Path) -> None:
    output = Output("x" * MAX_TEXT_CHARS, is_error=True)

    assert await ResultSize().after_tool(call_in(tmp_path), output) is output


async def test_long_text_goes_to_a_file_that_the_result_names(tmp_path: Path) -> None:
    text = "head " + "x" * MAX_TEXT_CHARS + " tail"
    output = Output((TextBlock(text=text), image(10)), SummaryDisplay(text="long"), is_error=True)

    short = await ResultSize().after_tool(call_in(tmp_path), output)

    words, picture = short.blocks
    assert isinstance(words, TextBlock)
    assert len(words.text) <= MAX_TEXT_CHARS
    assert words.text.startswith("head ")
    assert words.text.endswith(" tail")
    assert picture == image(10)
    assert (short.display, short.is_error) == (output.display, True)
    [file] = (tmp_path.parent / f"{tmp_path.name}-outputs").iterdir()
    assert str(file) in words.text
    assert file.read_text() == text


async def test_text_in_many_blocks_is_bounded_together(tmp_path: Path) -> None:
    output = Output(tuple(TextBlock(text=str(number) * 10_000) for number in range(10)))

    short = await ResultSize().after_tool(call_in(tmp_path), output)

    assert sum(len(block.text) for block in short.blocks if isinstance(block, TextBlock)) <= MAX_TEXT_CHARS


async def test_pictures_that_do_not_fit_are_replaced_by_words(tmp_path: Path) -> None:
    output = Output((image(MAX_ENCODED_BYTES - 5), image(10), image(5)))

    first, second, advice, third = (await ResultSize().after_tool(call_in(tmp_path), output)).blocks

    assert first == image(MAX_ENCODED_BYTES - 5)
    assert isinstance(second, TextBlock)
    assert "left out" in second.text
    assert isinstance(advice, TextBlock)
    assert advice.audience == "model"
    assert third == image(5)
