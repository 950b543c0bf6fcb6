"""Messages that come over standard input while a turn runs reach the model when they want to, and none is lost."""

import fcntl
import json
import signal
import struct
import subprocess
import termios
from threading import Event

from tests.e2e.conftest import Panpan, finished, wait_until
from tests.model_server import Hold, RecordedRequest, Reply, Stall, Text, ToolCall, say, serving

ARGS = ("-p", "--input-format", "stream-json", "-f", "stream-json")


def send(process: "subprocess.Popen[bytes]", text: str, **fields: str) -> None:
    line = {"type": "user", "message": {"role": "user", "content": text}, **fields}
    assert process.stdin is not None
    process.stdin.write(json.dumps(line).encode() + b"\n")
    process.stdin.flush()


def is_read(process: "subprocess.Popen[bytes]") -> bool:
    """True if the process has taken all that was written to it."""
    assert process.stdin is not None
    (left,) = struct.unpack("i", fcntl.ioctl(process.stdin, termios.FIONREAD, b"\0" * 4))
    return not left


def said(request: RecordedRequest) -> str:
    return json.dumps(request.messages)


def test_message_priority_chooses_next_round_or_next_turn(panpan: Panpan) -> None:
    gate = Event()
    with serving(
        [Reply((Text("Looking"), ToolCall("LS", {})), faults=(Hold("text", gate),)), say("one"), say("two")]
    ) as server:
        panpan.use(server)
        process = panpan.start(*ARGS)
        send(process, "begin", priority="next")
        wait_until(lambda: server.requests)
        send(process, "afterwards")
        send(process, "meanwhile", priority="next")
        wait_until(lambda: is_read(process))
        gate.set()
        done = finished(process)

    assert [line["result"] for line in done.lines if line["type"] == "result"] == ["one", "two"]
    assert ("meanwhile" in said(server.requests[1]), "afterwards" in said(server.requests[1])) == (True, False)
    assert "afterwards" in said(server.requests[2])
    shown = [line["message"]["content"][0] for line in done.lines if line["type"] == "user"]
    assert {"type": "text", "text": "meanwhile"} in shown
    assert done.code == 0


def test_interrupt_ends_the_turn_and_keeps_queued_messages(panpan: Panpan) -> None:
    with serving([say("never whole", faults=(Stall("text"),)), say("one"), say("two")]) as server:
        panpan.use(server)
        process = panpan.start(*ARGS)
        send(process, "begin")
        wait_until(lambda: server.requests)
        send(process, "afterwards")
        send(process, "meanwhile", priority="next")
        wait_until(lambda: is_read(process))
        process.send_signal(signal.SIGINT)
        done = finished(process)

    results = [line for line in done.lines if line["type"] == "result"]
    assert [line["is_error"] for line in results] == [True, False, False]
    assert [line["result"] for line in results[1:]] == ["one", "two"]
    assert ("meanwhile" in said(server.requests[1]), "afterwards" in said(server.requests[1])) == (True, False)
    assert done.code == 130


def test_unsent_messages_are_named_when_a_signal_ends_the_run(panpan: Panpan) -> None:
    with serving([say("never whole", faults=(Stall("text"),))]) as server:
        panpan.use(server)
        process = panpan.start(*ARGS)
        send(process, "begin")
        wait_until(lambda: server.requests)
        send(process, "a second thing")
        wait_until(lambda: is_read(process))
        process.send_signal(signal.SIGTERM)
        done = finished(process)

    assert "1 message of the input did not reach the model, the first: a second thing" in done.stderr
    assert done.code == 143
