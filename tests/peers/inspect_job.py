"""Runs the agent for Inspect in an evaluation of one sample with a scripted model; see `peer_inspect.py`.

Started with the Python that has Inspect: `inspect_job.py WHERE PANPAN HOME`. Prints the messages and the score.
"""

import json
import sys
from typing import Any

import inspect_ai
from inspect_ai.dataset import Sample
from inspect_ai.model import ModelAPI, ModelOutput, get_model, modelapi
from inspect_ai.scorer import includes

from panpan.integrations.inspect_agent import panpan

REPLIES = [
    ModelOutput.for_tool_call("scripted/model", "Write", {"file_path": "a.txt", "content": "hello\n"}),
    ModelOutput.from_content("scripted/model", "wrote it"),
]


@modelapi(name="scripted")
def scripted() -> Any:
    class Scripted(ModelAPI):
        async def generate(self, *_: Any, **__: Any) -> ModelOutput:
            return REPLIES.pop(0)

        async def count_tokens(self, *_: Any, **__: Any) -> int:  # Inspect's own would fetch a vocabulary
            return 10

        async def count_text_tokens(self, *_: Any, **__: Any) -> int:
            return 10

        async def count_tool_tokens(self, *_: Any, **__: Any) -> int:
            return 10

    return Scripted


def main(where: str, command: str, home: str) -> None:
    sample = Sample(input="write hello to a.txt", target="wrote")
    solver = panpan(where, command=(command,), flags=("--yes",), env={"PANPAN_HOME": f"{home}/.panpan"}, cwd=home)
    task = inspect_ai.Task(dataset=[sample], solver=solver, sandbox="local", scorer=includes())
    (log,) = inspect_ai.eval(task, model=get_model("scripted/model"), display="none", log_dir=f"{home}/logs")
    samples = log.samples or []
    found = {
        "status": log.status,
        "error": log.error.message if log.error else "",
        "messages": [[message.role, message.text] for sample in samples for message in sample.messages],
        "scores": [score.value for sample in samples for score in (sample.scores or {}).values()],
    }
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
