"""A language server for `.toy` files with faults that its arguments name: it dies, hangs, floods or lies.

Run as a program, with only the standard library: `language_server.py LOG FAULT...`. Each line of LOG is a received
message, as JSON; the method "start" marks a start of the server. A line of a `.toy` file with the word ERROR is an
error, and so is `NEEDS word` if no line of the file, nor of `words.toy` beside it on disk, is that word.
"""

import json
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

LOG, FAULTS = sys.argv[1], set(sys.argv[2:])
PULLS = "publishes" not in FAULTS
CAPABILITIES = {
    "positionEncoding": "utf-16",
    "textDocumentSync": {"openClose": True, "change": 1, "save": True},
    "definitionProvider": True,
    "referencesProvider": {},
    "hoverProvider": True,
    "documentSymbolProvider": True,
    "workspaceSymbolProvider": True,
    "renameProvider": True,
    **({"diagnosticProvider": {"interFileDependencies": False, "workspaceDiagnostics": False}} if PULLS else {}),
}


class Toy:
    """The server."""

    def __init__(self) -> None:
        self.root = ""
        self.texts: dict[str, str] = {}
        self.found: dict[str, list[Any]] = {}
        self.versions: dict[str, int] = {}
        self.answers: list[Any] = []
        self.asked = 0

    def serve(self) -> None:
        note({"method": "start", "params": sorted(os.environ)})
        if "dies" in FAULTS:
            sys.exit("out of luck")
        if "complains" in FAULTS:
            sys.exit(
                "\n".join(["starting", "error: no toys are installed", *(f"{at}: <unknown>" for at in range(2000))])
            )
        if "prints" in FAULTS:
            sys.stdout.write("welcome to the toy server\n" * 1000)
            sys.stdout.flush()
        if "huge" in FAULTS:
            sys.stdout.write("Content-Length: 99999999999\r\n\r\n")
            sys.stdout.flush()
        for fault in FAULTS:
            while fault.startswith("waits-for=") and not Path(fault.partition("=")[2]).exists():
                time.sleep(0.01)
        if "deaf" in FAULTS:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        while (message := receive()) is not None:
            note(message)
            self.take(message)
        while "deaf" in FAULTS:
            signal.pause()

    def take(self, message: dict[str, Any]) -> None:
        method, number = message.get("method"), message.get("id")
        if method is None:
            self.answers.append(message)
            return
        params = message.get("params") or {}
        if number is None:
            self.told(method, params)
            return
        if method == "initialize":
            if "hangs" not in FAULTS:
                self.root = params["rootUri"]
                time.sleep(0.3 if "starts-slowly" in FAULTS else 0)
                send({"id": number, "result": {"capabilities": CAPABILITIES}})
        elif method == "shutdown":
            if "deaf" not in FAULTS:
                send({"id": number, "result": None})
        elif "dies-when-asked" in FAULTS:
            sys.exit("out of breath")
        elif "silent" not in FAULTS:
            if "hasty" in FAULTS and self.asked < 2:
                self.asked += 1
                send({"id": number, "error": {"code": -32801, "message": "content modified"}})
                return
            if "babbles" in FAULTS:
                send({"id": number, "error": {"code": [], "message": {}}})
                return
            handler = getattr(self, "on_" + method.rpartition("/")[2], None)
            if handler is None:
                send({"id": number, "error": {"code": -32601, "message": "no such thing"}})
            else:
                send({"id": number, "result": handler(params)})

    def told(self, method: str, params: dict[str, Any]) -> None:
        if method == "exit" and "deaf" not in FAULTS:
            sys.exit(0)
        if method == "initialized" and "asks" in FAULTS:
            send({"id": "c", "method": "workspace/configuration", "params": {"items": [{}, {}]}})
            send({"id": "e", "method": "workspace/applyEdit", "params": {"edit": {}}})
            send({"id": "x", "method": "toy/unknown"})
        if method == "initialized" and "reads" in FAULTS:
            send({"id": "p", "method": "window/workDoneProgress/create", "params": {"token": "t"}})
            send({"method": "$/progress", "params": {"token": "t", "value": {"kind": "begin", "title": "reading"}}})
        if method == "textDocument/didOpen":
            self.show(params["textDocument"], params["textDocument"]["text"])
        if method == "textDocument/didChange":
            self.show(params["textDocument"], params["contentChanges"][0]["text"])

    def show(self, document: dict[str, Any], text: str) -> None:
        uri = document["uri"]
        self.texts[uri], self.versions[uri] = text, document["version"]
        if "floods" in FAULTS:
            for number in range(3_000):
                publish(f"{self.root}/other{number % 7}.toy", None, self.problems("ERROR\n" * 5))
        found = self.problems(text)
        if "only-news" in FAULTS:
            if found != self.found.get(uri):
                publish(uri, None, found)
            self.found[uri] = found
        elif not PULLS:
            publish(uri, self.versions[uri] - 1, self.problems("ERROR of an old text"))
            publish(uri, self.versions[uri], found[:1])
            if "in-pieces" in FAULTS:
                time.sleep(0.22)  # longer than the pause before errors are reported, shorter than the silence
            publish(uri, self.versions[uri], found)
            if "never-rests" in FAULTS:
                threading.Thread(target=publish_on, args=(uri, self.versions[uri], found), daemon=True).start()

    def problems(self, text: str) -> list[dict[str, Any]]:
        lines = text.split("\n")
        repeats = 50 if "many" in FAULTS else 1
        found = [
            {"range": spot(at, 0, at, 5), "severity": 1, "code": "toy", "message": f"wrong {copy}: {line.strip()}"}
            for at, line in enumerate(lines)
            if "ERROR" in line
            for copy in range(repeats)
        ]
        words = Path(unquote(urlsplit(self.root).path)) / "words.toy"
        there = {*lines, *(words.read_text().split() if words.exists() else ())}
        found += [
            {"range": spot(at, 0, at, 5), "severity": 1, "message": f"missing: {line[6:]}"}
            for at, line in enumerate(lines)
            if line.startswith("NEEDS ") and line[6:] not in there
        ]
        if "lies" in FAULTS:
            found += [{"range": "nowhere"}, 7, {"message": "without a place"}, {"range": spot(-1, 0, 0, 0)}]
            found.append({"range": spot(2**30, 0, 2**30, 1), "message": "\x1b[31mfar \u202e away\nnew line " * 100})
        if "warns" in FAULTS:
            found.append({"range": spot(0, 0, 0, 1), "severity": 2, "message": "a warning"})
        return found

    def on_diagnostic(self, params: dict[str, Any]) -> Any:
        return {"kind": "full", "items": self.problems(self.texts[params["textDocument"]["uri"]])}

    def on_definition(self, params: dict[str, Any]) -> Any:
        here = {"uri": params["textDocument"]["uri"], "range": spot_at(params["position"])}
        if "lies" in FAULTS:
            return [
                {"uri": "file:///etc/shadow", "range": spot(0, 0, 0, 1)},
                {"uri": "http://example.org/a.toy", "range": spot(0, 0, 0, 1)},
                {"uri": here["uri"], "range": spot(2**30, 0, 2**30, 1)},
                {"uri": here["uri"], "range": spot(-5, 0, 0, 1)},
                {"uri": 12, "range": None},
                "somewhere",
                {"targetUri": here["uri"], "targetSelectionRange": here["range"], "targetRange": here["range"]},
            ]
        return here

    def on_references(self, params: dict[str, Any]) -> Any:
        uri = params["textDocument"]["uri"]
        word = word_at(self.texts[uri], params["position"])
        found = []
        for place, text in self.every().items():
            for at, line in enumerate(text.split("\n")):
                if word and word in line:
                    found.append({"uri": place, "range": spot(at, 0, at, 1)})
        return found * 200 if "many" in FAULTS else found

    def on_hover(self, params: dict[str, Any]) -> Any:
        if "asks" in FAULTS:
            return {"contents": {"kind": "plaintext", "value": json.dumps(self.answers)}}
        word = word_at(self.texts[params["textDocument"]["uri"]], params["position"])
        text = "x" * 3_000_000 if "large" in FAULTS else f"\x1b]0;title\x07the word {word}"
        return {"contents": [{"language": "toy", "value": text}, "of the toy language"]}

    def on_documentSymbol(self, params: dict[str, Any]) -> Any:  # noqa: N802 - the protocol's name
        here = spot(0, 0, 0, 1)
        inner = {"name": "inner", "kind": 6, "range": here, "selectionRange": here}
        return [{"name": "outer", "kind": 5, "range": here, "selectionRange": here, "children": [inner, "none"]}]

    def on_symbol(self, params: dict[str, Any]) -> Any:
        place = {"uri": next(iter(self.texts)), "range": spot(0, 0, 0, 1)}
        return [{"name": params["query"], "kind": 12, "location": place, "containerName": "toys"}]

    def on_rename(self, params: dict[str, Any]) -> Any:
        uri, new = params["textDocument"]["uri"], params["newName"]
        word = word_at(self.texts[uri], params["position"])
        if "outside" in FAULTS:
            return {"changes": {"file:///etc/toy.toy": [{"range": spot(0, 0, 0, 1), "newText": new}]}}
        if "moves" in FAULTS:
            return {"documentChanges": [{"kind": "rename", "oldUri": uri, "newUri": f"{uri}x"}]}
        if "beyond" in FAULTS:
            return {"changes": {uri: [{"range": spot(900, 0, 900, 1), "newText": new}]}}
        if "elsewhere" in FAULTS:
            return {"changes": {uri: [{"range": spot(0, 0, 0, 1), "newText": new}]}}
        changes: dict[str, list[Any]] = {}
        for place, text in self.every().items():
            for at, line in enumerate(text.split("\n")):
                start = line.find(word)
                while start >= 0:
                    left, right = utf16(line[:start]), utf16(line[: start + len(word)])
                    edit = {"range": spot(at, left, at, right), "newText": new}
                    changes.setdefault(place, []).append(edit)
                    if "twice" in FAULTS:
                        changes[place].append({**edit, "newText": f"{new}{new}"})
                    start = line.find(word, start + len(word))
        documents = [{"textDocument": {"uri": uri, "version": None}, "edits": edits} for uri, edits in changes.items()]
        return {"documentChanges": documents}

    def every(self) -> dict[str, str]:
        """Return the texts of all toy files; for open ones, the text that the client sent."""
        texts = {}
        for path in sorted(Path(unquote(urlsplit(self.root).path)).glob("*.toy")):
            texts[path.as_uri()] = path.read_bytes().decode()
        return texts | {uri: text for uri, text in self.texts.items() if uri in texts}


def spot(line: int, start: int, end_line: int, end: int) -> dict[str, Any]:
    return {"start": {"line": line, "character": start}, "end": {"line": end_line, "character": end}}


def spot_at(position: dict[str, int]) -> dict[str, Any]:
    return {"start": position, "end": position}


def utf16(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


def word_at(text: str, position: dict[str, int]) -> str:
    line = text.split("\n")[position["line"]]
    rest = line.encode("utf-16-le")[2 * position["character"] :].decode("utf-16-le")
    end = next((at for at, character in enumerate(rest) if not (character.isalnum() or character == "_")), len(rest))
    return rest[:end]


def publish(uri: str, version: int | None, problems: list[dict[str, Any]]) -> None:
    send(
        {
            "method": "textDocument/publishDiagnostics",
            "params": {"uri": uri, "version": version, "diagnostics": problems},
        }
    )


def publish_on(uri: str, version: int, problems: list[dict[str, Any]]) -> None:
    while True:
        time.sleep(0.02)
        publish(uri, version, problems)


def note(message: dict[str, Any]) -> None:
    with Path(LOG).open("a", encoding="utf-8") as log:
        log.write(json.dumps(message) + "\n")


def send(message: dict[str, Any]) -> None:
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    sys.stdout.buffer.write(
        b"Content-Length: %d\r\nContent-Type: application/vscode-jsonrpc; charset=utf-8\r\n\r\n" % len(body)
    )
    sys.stdout.buffer.write(body)
    sys.stdout.buffer.flush()


def receive() -> dict[str, Any] | None:
    size = 0
    while line := sys.stdin.buffer.readline().strip():
        if line.lower().startswith(b"content-length:"):
            size = int(line.partition(b":")[2])
    return json.loads(sys.stdin.buffer.read(size)) if size else None


if __name__ == "__main__":
    Toy().serve()
