"""The worker that opens a session of many messages, as `panpan -c` does before it shows anything, and measures it.

python -m benchmarks.opened_session MESSAGES
"""

import gc
import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time

from benchmarks.resident import rss_mb
from panpan.core.conversation import Conversation
from panpan.session.log.records import record_of
from panpan.session.log.session_log import SessionLog
from panpan.session.opening import resume_log
from panpan.types.content import TextBlock, ToolResultBlock, ToolUseBlock
from panpan.types.messages import AssistantMessage, Message, ToolResultMessage, UserMessage

_OUTPUT = "a line of code that a tool has read\n" * 40


def turn(number: int) -> list[Message]:
    """Return four messages: a prompt, a call, its result, an answer."""
    use = ToolUseBlock(id=f"toolu_{number}", name="Read", input={"file_path": f"/work/module_{number}.py"})
    result = ToolResultBlock(tool_use_id=use.id, content=(TextBlock(text=f"{number}\n{_OUTPUT}"),))
    return [
        UserMessage.of(f"look at module {number} and say what it does"),
        AssistantMessage(content=(TextBlock(text="I look. " * 5), use), model="scripted", stop_reason="tool_use"),
        ToolResultMessage(result=result),
        AssistantMessage(content=(TextBlock(text="It reads lines and counts them. " * 10),), model="scripted"),
    ]


def write_log(path: Path, messages: int) -> None:
    """Write the log of a session with this number of messages."""
    log = SessionLog(path, session_id=path.stem, cwd=path.parent)
    for number in range(messages // 4):
        for message in turn(number):
            log.append(record_of(message))
    log.close()


def main() -> None:
    """Print the figures as JSON."""
    gc.set_threshold(10_000, 20, 10)  # as the command does once a session is open
    with TemporaryDirectory(prefix="panpan-bench-") as name:
        path = Path(name).resolve() / "s1.jsonl"
        write_log(path, int(sys.argv[1]))
        size_mb = path.stat().st_size / 1e6
        write_log(Path(name).resolve() / "small.jsonl", 8)
        resume_log(Path(name).resolve() / "small.jsonl", cwd=path.parent, warn=lambda _: None)  # one-time allocations
        before_mb = rss_mb()
        started_at = process_time()
        log = SessionLog(path, session_id="s1", cwd=path.parent)
        session = resume_log(path, cwd=path.parent, warn=lambda _: None)
        conversation = Conversation("", (), session.messages, session.compactions)
        opened_s = process_time() - started_at
        assert len(conversation.messages) == int(sys.argv[1])
        print(json.dumps({"opened_s": opened_s, "memory_mb": rss_mb() - before_mb, "log_mb": size_mb}))
        log.close()


if __name__ == "__main__":
    main()
