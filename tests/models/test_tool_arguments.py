import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from panpan.models.reply import MAX_ARGUMENT_CHARS, ArgumentsError, read_arguments


@pytest.mark.parametrize("text", ["", " ", "\n\t"])
def test_empty_arguments_are_an_empty_object(text: str) -> None:
    assert read_arguments(text) == {}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": [1, 2.5, null, true]}', {"a": [1, 2.5, None, True]}),
        ('{"n": 123456789012345678901234567890}', {"n": 123456789012345678901234567890}),
        ('{"s": "\\ud83c\\udf88 e"}', {"s": "🎈 e"}),
        ('{"s": "two\nlines\tand a tab"}', {"s": "two\nlines\tand a tab"}),
    ],
)
def test_objects_are_read(text: str, value: object) -> None:
    assert read_arguments(text) == value


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"path": "a.t', "not whole, valid JSON"),
        ('{"a": 1} and more', "not whole, valid JSON"),
        ("{'a': 1}", "not whole, valid JSON"),
        ('{"a": NaN}', "not whole, valid JSON"),
        ('{"a": "half a pair \\ud83c"}', "half of a surrogate pair"),
        ('{"a": "half a pair \\udc00 and\na line"}', "half of a surrogate pair"),
        ('{"a": "half a pair \ud83c"}', "half of a surrogate pair"),
        ('{"a": "raw\nline", }', "not whole, valid JSON"),
        ('["a"]', "not a JSON object but an array"),
        ('"{}"', "not a JSON object but a string"),
        ("null", "not a JSON object but null"),
        ("12", "not a JSON object but a number"),
        ("true", "not a JSON object but a boolean"),
        ('{"a": [1e999]}', "number that is too large"),
        ('{"a":' * 300 + "1" + "}" * 300, "nested too deep"),
        ('{"a":"\n' + '",' + '"b":{"a":' * 1000, "nested too deep|not whole"),
        ('{"a": "' + "x" * MAX_ARGUMENT_CHARS + '"}', "longer than 8,388,608 characters"),
    ],
)
def test_other_arguments_are_an_error_with_advice_for_the_model(text: str, says: str) -> None:
    with pytest.raises(ArgumentsError, match=says) as caught:
        read_arguments(text)

    assert len(str(caught.value)) < 300


@given(st.text(alphabet='{}[]":,\\ud8e19.-+tfn\n x', max_size=30))
def test_accepted_arguments_can_be_sent_back(text: str) -> None:
    try:
        value = read_arguments(text)
    except ArgumentsError:
        return
    json.dumps(value, allow_nan=False, ensure_ascii=False).encode()
