"""The JSON schema of a tool's arguments, as small as it can be: it is paid for again in every request."""

from typing import Any

from pydantic import BaseModel

_UNTOLD = frozenset({"title", "minLength", "maxLength", "pattern"})
"""What a model is not told of a value: where it matters, the error says it."""


def input_schema(model: type[BaseModel]) -> dict[str, Any]:
    """Return the JSON schema of `model`: references resolved, titles and nulls of optional fields left out.

    So are defaults that are nothing, no or zero: any model takes it to be so where nothing is said. A recursive model
    keeps its references.
    """
    schema = model.model_json_schema()
    definitions = schema.pop("$defs", {})
    small: dict[str, Any] = _smaller(schema, definitions, ())
    small.pop("description", None)  # the docstring of the model; the tool's own description says it
    return small


def _smaller(node: Any, definitions: dict[str, Any], open_names: tuple[str, ...]) -> Any:
    if isinstance(node, list):
        return [_smaller(item, definitions, open_names) for item in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        name = node["$ref"].rsplit("/", 1)[-1]
        if name not in open_names:
            rest = {key: value for key, value in node.items() if key != "$ref"}
            return _smaller({**definitions[name], **rest}, definitions, (*open_names, name))
    if "anyOf" in node:
        options = [option for option in node["anyOf"] if option != {"type": "null"}]
        if len(options) == 1:
            rest = {key: value for key, value in node.items() if key != "anyOf" and value is not None}
            return _smaller({**options[0], **rest}, definitions, open_names)
    return {
        key: _properties(value, definitions, open_names)
        if key == "properties"
        else _smaller(value, definitions, open_names)
        for key, value in node.items()
        if key not in _UNTOLD and (key != "default" or value)
    }


def _properties(properties: dict[str, Any], definitions: dict[str, Any], open_names: tuple[str, ...]) -> dict[str, Any]:
    """Shrink each property; a property may itself be called "title"."""
    return {name: _smaller(schema, definitions, open_names) for name, schema in properties.items()}
