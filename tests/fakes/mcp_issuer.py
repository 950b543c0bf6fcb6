"""A server that wants logins, and the issuer of its tokens, as one application for tests."""

import base64
import hashlib
from collections.abc import AsyncGenerator, Mapping
from typing import Any
from urllib.parse import parse_qs, urlencode

import anyio
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send


class Issuer:
    """Gives tokens, and lets only requests with one of them through to an application.

    Args:
        app: The application.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.url = ""
        """Its address, set once it is served."""
        self.valid: dict[str, str] = {}
        """Tokens that count, with their rights."""
        self.renewing: dict[str, str] = {}
        """Refresh tokens, with their rights; each counts once."""
        self.needs = "read"
        """Right without which a request is refused."""
        self.lives_s: int | None = 3600
        self.metadata: dict[str, Any] = {}
        """Further metadata of the issuer."""
        self.refuses = ""
        """Error that the page of the issuer answers with."""
        self.says: bytes | None = None
        """Answer of the token endpoint in place of a token."""
        self.holds: anyio.Event | None = None
        """Let a renewal wait until this is set."""
        self.is_asked = anyio.Event()
        """Set once a renewal waits."""
        self.floods = False
        """True if a refusal has an endless body."""
        self.renewals = 0
        self.revoked: list[str] = []
        self.sent: list[str] = []
        """Tokens of the requests that were let through."""
        self._app = app
        self._codes: dict[str, Mapping[str, str]] = {}
        self._made = 0
        self._pages = Starlette(
            routes=[
                Route("/.well-known/oauth-protected-resource/mcp", self._resource),
                Route("/.well-known/oauth-authorization-server", self._issuer),
                Route("/register", self._register, methods=["POST"]),
                Route("/authorize", self._authorize),
                Route("/token", self._token, methods=["POST"]),
                Route("/revoke", self._revoke, methods=["POST"]),
            ]
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not scope["path"].startswith("/mcp"):
            await (self._app if scope["type"] != "http" else self._pages)(scope, receive, send)
            return
        headers = dict(scope["headers"])
        token = headers.get(b"authorization", b"").decode().removeprefix("Bearer ")
        rights = self.valid.get(token)
        if rights is not None and self.needs in rights.split():
            self.sent.append(token)
            await self._app(scope, receive, send)
            return
        where = f'resource_metadata="{self.url}/.well-known/oauth-protected-resource/mcp"'
        more = 'error="insufficient_scope", ' if rights is not None else ""
        if self.floods:
            await StreamingResponse(self._flood(), 401, media_type="text/event-stream")(scope, receive, send)
            return
        challenge = {"www-authenticate": f'Bearer {more}scope="{self.needs}", {where}'}
        await Response(status_code=403 if more else 401, headers=challenge)(scope, receive, send)

    async def _flood(self) -> AsyncGenerator[bytes, None]:
        for _ in range(200):
            yield b"x" * 1_000_000

    def expire(self) -> None:
        """Let no token count any more."""
        self.valid.clear()

    async def _resource(self, request: Request) -> Response:
        return JSONResponse({"resource": f"{self.url}/mcp", "authorization_servers": [self.url]})

    async def _issuer(self, request: Request) -> Response:
        ends = {"authorization": "authorize", "token": "token", "registration": "register", "revocation": "revoke"}
        known = {f"{name}_endpoint": f"{self.url}/{end}" for name, end in ends.items()}
        return JSONResponse({"issuer": self.url, **known, **self.metadata})

    async def _register(self, request: Request) -> Response:
        return JSONResponse({**await request.json(), "client_id": "made"}, status_code=201)

    async def _authorize(self, request: Request) -> Response:
        asked = dict(request.query_params)
        if self.refuses:
            answer = {"error": self.refuses, "state": asked["state"]}
        else:
            code = f"code-{len(self._codes)}"
            self._codes[code] = asked
            answer = {"code": code, "state": asked["state"], "iss": self.url}
        return RedirectResponse(f"{asked['redirect_uri']}?{urlencode(answer)}")

    async def _token(self, request: Request) -> Response:
        form = {name: values[0] for name, values in parse_qs((await request.body()).decode()).items()}
        if form["grant_type"] == "refresh_token":
            rights = self.renewing.pop(form["refresh_token"], None)
            if rights is None:
                return JSONResponse({"error": "invalid_grant"}, status_code=400)
            self.renewals += 1
            if self.holds is not None:
                self.is_asked.set()
                await self.holds.wait()
        else:
            asked = self._codes.pop(form["code"])
            digest = hashlib.sha256(form["code_verifier"].encode()).digest()
            assert base64.urlsafe_b64encode(digest).decode().rstrip("=") == asked["code_challenge"]
            assert form["resource"] == asked["resource"] == f"{self.url}/mcp"
            rights = asked.get("scope", "")
        if self.says is not None:
            return Response(self.says, media_type="application/json")
        self._made += 1
        token, renew = f"token-{self._made}", f"renew-{self._made}"
        self.valid[token], self.renewing[renew] = rights, rights
        answer = {"access_token": token, "token_type": "Bearer", "refresh_token": renew, "expires_in": self.lives_s}
        return JSONResponse({key: value for key, value in answer.items() if value is not None})

    async def _revoke(self, request: Request) -> Response:
        self.revoked += parse_qs((await request.body()).decode())["token"]
        return Response()
