"""The request that makes the server read what every conversation begins with, before the first one does.

What it read is kept in a file beside the weights, so that a later start takes it from there: some 100 ms in place of
the 15 s that a thousand tokens cost on two cores. The file holds panpan's own words only, never a user's.
"""

import json
from hashlib import blake2b
from typing import Any

from panpan.capabilities.local_model.profile import EmbeddedProfile
from panpan.models.providers.openai_request import OpenAIEncoder
from panpan.models.providers.vendor_profiles import LLAMA_CPP
from panpan.models.wire import WireHistory, joined_body
from panpan.types.llm import ModelOptions
from panpan.types.messages import UserMessage


def warm_up_request(profile: EmbeddedProfile, model: str) -> dict[str, Any]:
    """Return a request with the beginning that a new conversation has, for a reply of one token."""
    encoder = OpenAIEncoder(LLAMA_CPP)
    options = ModelOptions(model=model, max_output_tokens=1, temperature=0.0)
    tools = tuple((profile.model.tools or {}).values())
    head = encoder.encode_head(options, profile.model.system_prompt or "", tools, is_stream=False)
    history = WireHistory(lambda reply: encoder.encode_reply(reply, model=model), encoder.encode_user_side)
    groups = history.groups([*profile.examples, UserMessage.of("hello")])
    request: dict[str, Any] = json.loads(joined_body(head, [group.data for group in groups]))
    return request


def prefix_key(weights: str, request: dict[str, Any], template: str) -> str:
    """Return what tells what a model read of a request from what it, or another one, read of others."""
    return blake2b(json.dumps([weights, request, template]).encode(), digest_size=8).hexdigest()
