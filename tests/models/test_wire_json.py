import json
import re

from hypothesis import given
from hypothesis import strategies as st

from panpan.models.wire import joined_body, list_in, read_event, text_in, to_json, wire_id, wire_tool_name
from tests.models.wire import ODD_TEXT


@given(st.lists(st.none() | ODD_TEXT | st.integers()))
def test_to_json_is_valid_utf8_for_any_text(value: object) -> None:
    json.loads(to_json(value).decode())


def test_half_surrogate_becomes_a_question_mark() -> None:
    assert to_json("caf\udce9 ü") == '"caf? ü"'.encode()


@given(ODD_TEXT)
def test_tool_names_and_ids_are_acceptable_to_providers(text: str) -> None:
    assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", wire_tool_name(text))
    assert not text or re.fullmatch(r"[a-zA-Z0-9_-]{1,40}", wire_id(text, max_chars=40))


def test_plain_ids_are_kept_and_others_stay_different() -> None:
    assert wire_id("toolu_01A-b", max_chars=40) == "toolu_01A-b"
    assert wire_id("functions.Read:0", max_chars=40) != wire_id("functions_Read:0", max_chars=40)
    assert wire_id("x" * 200, max_chars=40) != wire_id("x" * 201, max_chars=40)


def test_broken_characters_do_not_cost_an_event() -> None:
    assert read_event(b'{"a": "caf\xe9"}', provider="p") == {"a": "caf\ufffd"}
    assert read_event(b'{"a": "\\ud83c"}', provider="p") == {"a": "\ufffd"}


@given(st.lists(st.integers(), min_size=1, max_size=4))
def test_body_is_its_head_and_then_all_messages(messages: list[int]) -> None:
    body = joined_body(b'{"a":1,"messages":[', [to_json(message) for message in messages])

    assert json.loads(body) == {"a": 1, "messages": messages}


@given(ODD_TEXT, st.lists(st.integers()), st.none() | st.integers() | st.dictionaries(st.text(), st.text()))
def test_text_in_and_list_in_take_other_types_as_empty(text: str, items: list[int], other: object) -> None:
    assert (text_in(text), text_in(items), text_in(other)) == (text, "", "")
    assert (list_in(items), list_in(text), list_in(other)) == (items, [], [])
