"""A symbol is found by its name on the line that the model names."""

import pytest

from panpan.capabilities.language_servers.wire import find_symbol
from panpan.errors import ToolError

LINES = ["def help(helper):", "    🎉 = helper", "module.helper(1)", "x.y"]


@pytest.mark.parametrize(
    ("symbol", "line", "place"),
    [
        ("helper", 1, (1, 9)),
        ("helper", 2, (2, 8)),
        ("helper", None, (1, 9)),
        ("module.helper", None, (3, 7)),
        ("help", None, (1, 4)),
        ("🎉", 2, (2, 4)),
    ],
)
def test_symbol_is_a_whole_word(symbol: str, line: int | None, place: tuple[int, int]) -> None:
    assert find_symbol(LINES, symbol, line, "a.py") == place


@pytest.mark.parametrize(
    ("symbol", "line", "advice"),
    [
        ("helper", 4, "line 4 of a.py has no helper; it is in line 1, 2, 3"),
        ("helper", 99, "a.py has 4 lines, and no line 99; it is in line 1, 2, 3"),
        ("hel", None, "hel is not in a.py as a whole word"),
    ],
)
def test_missing_symbol_error_names_the_lines_that_have_it(symbol: str, line: int | None, advice: str) -> None:
    with pytest.raises(ToolError) as caught:
        find_symbol(LINES, symbol, line, "a.py")

    assert str(caught.value).startswith(advice)
