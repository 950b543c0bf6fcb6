"""Answers as JSON that fits a schema: `--json-schema`."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import Panpan
from tests.model_server import ToolCall, call, calls, say, serving
from tests.model_server.recording import RecordedRequest

SCHEMA = {
    "type": "object",
    "properties": {"count": {"type": "integer", "minimum": 1}, "name": {"type": "string"}},
    "required": ["count", "name"],
    "additionalProperties": False,
}
GOOD = {"count": 2, "name": "cats"}
DIALECTS = pytest.mark.parametrize("dialect", ["anthropic", "openai"])


def schema_of(request: RecordedRequest) -> Any:
    """Return the arguments' schema of the last tool that takes the answer."""
    tools = [tool.get("function", tool) for tool in request.body["tools"]]
    (tool,) = [tool for tool in tools if tool["name"] == "StructuredOutput"]
    return tool.get("parameters", tool.get("input_schema"))


@DIALECTS
def test_answer_is_the_call_that_fits(panpan: Panpan, dialect: str) -> None:
    (panpan.workspace / "a.txt").write_text("cats\n")
    with serving([call("Read", {"file_path": "a.txt"}), call("StructuredOutput", GOOD)]) as server:
        panpan.use(server, dialect=dialect)
        done = panpan.run("-p", "count", "-f", "json", "--json-schema", json.dumps(SCHEMA))

    assert done.code == 0
    assert done.result["structured_output"] == GOOD
    assert json.loads(done.result["result"]) == GOOD
    assert done.result["num_turns"] == 2
    assert schema_of(server.requests[0])["properties"].keys() == {"count", "name"}


@DIALECTS
def test_answer_that_does_not_fit_is_asked_for_again(panpan: Panpan, dialect: str) -> None:
    with serving([call("StructuredOutput", {"count": 0}), call("StructuredOutput", GOOD)]) as server:
        panpan.use(server, dialect=dialect)
        done = panpan.run("-p", "count", "-f", "json", "--json-schema", json.dumps(SCHEMA))

    assert done.result["structured_output"] == GOOD
    told = json.dumps(server.requests[1].body)
    assert "$.count: 0 is less than the minimum of 1" in told
    assert "'name' is a required property" in told


@pytest.mark.parametrize("text", [json.dumps(GOOD), f"```json\n{json.dumps(GOOD, indent=1)}\n```"])
def test_answer_in_words_counts_if_it_fits(panpan: Panpan, text: str) -> None:
    with serving([say(text)]) as server:
        panpan.use(server)
        done = panpan.run("-p", "count", "-f", "json", "--json-schema", json.dumps(SCHEMA))

    assert done.result["structured_output"] == GOOD


def test_missing_answer_is_asked_for(panpan: Panpan) -> None:
    with serving([say("There are two."), call("StructuredOutput", GOOD)]) as server:
        panpan.use(server)
        done = panpan.run("-p", "count", "-f", "json", "--json-schema", json.dumps(SCHEMA))

    assert done.result["structured_output"] == GOOD
    assert "Your final answer is missing" in json.dumps(server.requests[1].body)


@pytest.mark.parametrize(
    "bad", [say('{"a": NaN}'), say('{"a": -Infinity}'), calls(ToolCall("StructuredOutput", arguments='{"a": 1e999}'))]
)
def test_number_that_json_has_not_is_no_answer(panpan: Panpan, bad: Any) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "number"}}}
    with serving([bad, call("StructuredOutput", {"a": 1})]) as server:
        panpan.use(server)
        done = panpan.run("-p", "count", "-f", "json", "--json-schema", json.dumps(schema))

    assert done.result["structured_output"] == {"a": 1}


_DOUBLED = {f"a{n}": {"allOf": [{"$ref": f"#/$defs/a{n + 1}"}] * 2} for n in range(40)}


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {"a": {"pattern": "^(a+)+$"}}, "required": ["a"]},
        {"type": "object", "properties": {"b": {"$ref": "#/$defs/a0"}}, "$defs": {**_DOUBLED, "a40": {}}},
    ],
)
def test_check_that_takes_for_ever_is_ended(panpan: Panpan, schema: Any) -> None:
    answers = [call("StructuredOutput", {"a": "a" * 40 + "!", "b": 1}), call("StructuredOutput", {"a": "aa"})]
    with serving(answers) as server:
        panpan.use(server)
        done = panpan.run("-p", "count", "-f", "json", "--json-schema", json.dumps(schema))

    assert done.result["structured_output"] == {"a": "aa"}
    assert "takes more than 2 s" in json.dumps(server.requests[1].messages[-1])


@pytest.mark.parametrize("bad", [call("StructuredOutput", {"count": "many"}), say("two cats")])
def test_answer_that_never_fits_fails_the_turn(panpan: Panpan, bad: Any) -> None:
    with serving([bad] * 5) as server:
        panpan.use(server)
        done = panpan.run("-p", "count", "-f", "stream-json", "--json-schema", json.dumps(SCHEMA))

    assert done.code == 1
    assert done.result["subtype"] == "error_max_structured_output_retries"
    assert "structured_output" not in done.result
    assert "no answer that fits the JSON schema in 5 tries" in done.stderr


@pytest.mark.parametrize(
    ("schema", "answer"),
    [
        ({"type": "array", "items": {"type": "integer"}}, [1, 2]),
        ({"anyOf": [{"type": "null"}, {"type": "string"}]}, None),
        ({"$ref": "#/$defs/A", "$defs": {"A": {"type": "object", "required": ["x"]}}}, {"x": 1}),
    ],
)
def test_answer_of_any_form_is_one_argument(panpan: Panpan, schema: Any, answer: Any) -> None:
    with serving([call("StructuredOutput", {"answer": answer})]) as server:
        panpan.use(server)
        done = panpan.run("-p", "count", "-f", "json", "--json-schema", json.dumps(schema))

    assert done.result["structured_output"] == answer
    assert schema_of(server.requests[0])["type"] == "object"


def test_text_output_is_the_data_alone(panpan: Panpan) -> None:
    with serving([call("StructuredOutput", GOOD)]) as server:
        panpan.use(server)
        done = panpan.run("-p", "count", "--json-schema", json.dumps(SCHEMA), "--tools", "")

    assert json.loads(done.stdout) == GOOD


def test_resumed_session_answers_to_a_new_schema(panpan: Panpan) -> None:
    with serving([say("hello"), say(json.dumps(GOOD))]) as server:
        panpan.use(server)
        panpan.run("-p", "hi")
        done = panpan.run("-c", "-p", "count", "-f", "json", "--json-schema", json.dumps(SCHEMA))

    assert done.result["structured_output"] == GOOD
    assert "only JSON" in json.dumps(server.requests[1].body)


WRONG = [
    ("{", "not valid JSON"),
    ('{"type": "thing"}', "the JSON schema cannot be used"),
    ("missing.json", "--json-schema: "),
]


def test_wrong_schema_is_refused_before_the_model_is_asked(panpan: Panpan) -> None:
    with serving([]) as server:
        panpan.use(server)
        for schema, said in WRONG:
            done = panpan.run("-p", "x", "--json-schema", schema)
            assert done.code == 2, schema
            assert said in done.stderr


def test_schema_in_a_file_is_read(panpan: Panpan, tmp_path: Path) -> None:
    (tmp_path / "schema.json").write_text(json.dumps(SCHEMA))
    with serving([call("StructuredOutput", GOOD)]) as server:
        panpan.use(server)
        done = panpan.run("-p", "count", "-f", "json", "--json-schema", str(tmp_path / "schema.json"))

    assert done.result["structured_output"] == GOOD


def test_reference_to_another_host_is_not_followed(panpan: Panpan) -> None:
    with serving([], probes={"/schema": {"type": "object"}}) as server:
        schema = {"type": "object", "properties": {"x": {"$ref": f"{server.url}/schema"}}}
        with serving([call("StructuredOutput", {"x": 1})] * 5) as model:
            panpan.use(model)
            done = panpan.run("-p", "count", "-f", "json", "--json-schema", json.dumps(schema))

        assert server.other_requests == []
    assert done.result["subtype"] == "error_max_structured_output_retries"
