"""Calls of the model in the tests of crashes: four, one after the other, that each change something."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.model_server import RecordedRequest, Reply, ToolCall, say

COUNT = "echo counted >> counter.txt"
CALLS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("Write", {"file_path": "a.txt", "content": "one\n"}),
    ("Edit", {"file_path": "a.txt", "old_string": "one", "new_string": "two"}),
    ("Bash", {"command": COUNT}),
    (
        "Patch",
        {
            "patch": "*** Begin Patch\n*** Add File: b.txt\n+new\n"
            "*** Update File: a.txt\n@@\n-two\n+three\n*** End Patch\n"
        },
    ),
)
EXPECTED = {"a.txt": "three\n", "b.txt": "new\n", "counter.txt": "counted\n"}
FINISHING = "MultiEdit", {"file_path": "a.txt", "edits": [{"old_string": "two", "new_string": "three"}]}
"""Rest of the patch after its first file was made and its second was not."""
READ = ToolCall("Read", {"file_path": "a.txt"})


def tree(folder: Path) -> dict[str, str]:
    """Return the files below a folder, by path."""
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


class Story:
    """The model: it goes on from what the history says was done, and makes again what was not."""

    def __init__(self) -> None:
        self.repeated: list[str] = []
        """Calls that were made although their result says that they were done."""
        self._calls = 0

    def __call__(self, request: RecordedRequest) -> Reply:
        results = list(_results(request.messages))
        done = [name for name, is_error, _ in results if not is_error and name != READ.name]
        self.repeated += [name for name in done if done.count(name) > 1]
        if results and results[-1][1] and "read" in results[-1][2].lower():  # it knows no file after a crash
            return self._call(READ.name, READ.input)
        is_half_made = any("in the midst of the call" in text for _, _, text in results)
        for name, arguments in [*CALLS[:-1], FINISHING] if is_half_made else CALLS:
            if name not in done:
                return self._call(name, arguments)
        return say("All is done.")

    def has_counted(self, workspace: Path) -> bool:
        """True if the command did its work; on a full disk it may make the file and not count in it."""
        counter = workspace / "counter.txt"
        return counter.exists() and counter.stat().st_size > 0

    def _call(self, name: str, arguments: dict[str, Any]) -> Reply:
        self._calls += 1
        return Reply((ToolCall(name, arguments, id=f"toolu_{self._calls:03}"),))


def _results(messages: list[dict[str, Any]]) -> Iterator[tuple[str, bool, str]]:
    """Yield of each result: the tool, whether it is an error, and its text."""
    names: dict[str, str] = {}
    for message in messages:
        for block in message["content"]:
            if block["type"] == "tool_use":
                names[block["id"]] = block["name"]
            elif block["type"] == "tool_result":
                yield names[block["tool_use_id"]], bool(block.get("is_error")), json.dumps(block["content"])
