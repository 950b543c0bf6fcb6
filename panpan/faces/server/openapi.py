"""The description of the server by OpenAPI 3.1, made from the types of the operations.

Written by https://spec.openapis.org/oas/v3.1.0; its schemas are those of JSON Schema 2020-12, as pydantic makes them.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, get_args

from pydantic import TypeAdapter

from panpan.faces.server.routes import SERVER_ADDRESSES, SESSION_ADDRESSES, Address, operation_of
from panpan.hub.operations.table import Params
from panpan.version import __version__

_REF = "#/components/schemas/{model}"
_ERROR = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["status", "message"],
            "properties": {"status": {"type": "integer"}, "message": {"type": "string"}},
        }
    },
}
_EVENT_STREAM = "Server-sent events: id EPOCH:NUMBER, event NAME, data as JSON."


@cache
def document() -> Mapping[str, Any]:
    """Return the document."""
    addresses = (*SERVER_ADDRESSES, *SESSION_ADDRESSES)
    wanted: list[Any] = []
    for address in addresses:
        operation = operation_of(address)
        wanted.append(((address, "params"), "validation", TypeAdapter(operation.params)))
        wanted.append(((address, "result"), "serialization", TypeAdapter(operation.result)))
    schemas, definitions = TypeAdapter.json_schemas(wanted, ref_template=_REF)
    paths: dict[str, dict[str, Any]] = {}
    for address in addresses:
        params = schemas[(address, "params"), "validation"]
        result = schemas[(address, "result"), "serialization"]
        named = definitions.get("$defs", {})
        paths.setdefault(address.path, {})[address.verb.lower()] = _operation(address, _resolved(params, named), result)
    paths |= _streams()
    return {
        "openapi": "3.1.0",
        "info": {"title": "panpan", "version": __version__, "description": "Sessions of panpan over HTTP."},
        "paths": paths,
        "components": {
            "schemas": {**definitions.get("$defs", {}), "Error": _ERROR},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}],
    }


def _resolved(schema: Mapping[str, Any], named: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the schema behind a reference."""
    reference = schema.get("$ref")
    return named[reference.rpartition("/")[2]] if reference else schema


def _operation(address: Address, params: Mapping[str, Any], result: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the description of one operation."""
    operation = operation_of(address)
    fields: Mapping[str, Any] = params.get("properties", {})
    in_path = [part[1:-1] for part in address.path.split("/") if part.startswith("{")]
    required = set(params.get("required", ()))
    described: dict[str, Any] = {
        "operationId": operation.name,
        "summary": operation.summary,
        "tags": [operation.name.partition(".")[0]],
        "parameters": [
            {"name": name, "in": "path", "required": True, "schema": fields.get(name, {"type": "string"})}
            for name in in_path
        ],
        "responses": {
            "200": {"description": "The result.", "content": {"application/json": {"schema": result}}},
            **_refusals(operation.params),
        },
    }
    rest = {name: schema for name, schema in fields.items() if name not in in_path}
    if address.verb == "GET":
        described["parameters"] += [
            {"name": name, "in": "query", "required": name in required, "schema": schema}
            for name, schema in rest.items()
        ]
    elif rest:
        needed = sorted(required & set(rest))
        schema = {"type": "object", "properties": rest, "additionalProperties": False}
        body = {"application/json": {"schema": {**schema, **({"required": needed} if needed else {})}}}
        described["requestBody"] = {"required": bool(needed), "content": body}
    return described


def _refusals(params: type[Params]) -> Mapping[str, Any]:
    """Return the responses to requests that cannot be fulfilled."""
    reference = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
    reasons = {
        "400": "The request does not fit, or cannot be fulfilled.",
        "401": "A token is needed.",
        "403": "The token, or the origin, does not allow it.",
        "404": "There is no such thing.",
        "408": "The body did not come in time.",
        "409": "Something else runs, or too much does.",
        "413": "The request is too long.",
        "415": "The body is not JSON.",
        "421": "The server has another name.",
        "422": "It was tried and failed.",
        "429": "Too many requests.",
        "503": "Too many connections, or large requests.",
    }
    return {status: {"description": text, "content": reference} for status, text in reasons.items()}


def _streams() -> Mapping[str, Any]:
    """Return the descriptions of the streams of events, and of tokens."""
    stream = {"200": {"description": _EVENT_STREAM, "content": {"text/event-stream": {"schema": {"type": "string"}}}}}
    session = {"name": "session", "in": "path", "required": True, "schema": {"type": "string"}}
    number = {"type": "integer", "minimum": 0}
    token = {"type": "object", "required": ["token"], "properties": {"token": {"type": "string"}}}
    only_reads = {"type": "object", "properties": {"only_reads": {"type": "boolean"}}, "additionalProperties": False}
    return {
        "/v1/events": {
            "get": {
                "operationId": "events.all",
                "summary": "Return events of all open sessions, from now on",
                "responses": {**stream, **_refusals(Params)},
            }
        },
        "/v1/sessions/{session}/events": {
            "get": {
                "operationId": "events.list",
                "summary": "Return events of a session behind a number, and go on with those to come",
                "parameters": [
                    session,
                    {"name": "epoch", "in": "query", "schema": {"type": "string"}},
                    {"name": "after", "in": "query", "schema": number},
                ],
                "responses": {**stream, **_refusals(Params)},
                "x-events": event_names(),
            }
        },
        "/v1/sessions/{session}/tokens": {
            "post": {
                "operationId": "tokens.add",
                "summary": "Return a new token for one session",
                "parameters": [session],
                "requestBody": {"required": False, "content": {"application/json": {"schema": only_reads}}},
                "responses": {
                    "200": {"description": "The token.", "content": {"application/json": {"schema": token}}},
                    **_refusals(Params),
                },
            }
        },
    }


def event_names() -> Sequence[str]:
    """Return the names of all events."""
    from panpan.hub.events import HubEvent
    from panpan.hub.wire import name_of

    return sorted(name_of(one) for one in get_args(HubEvent))
