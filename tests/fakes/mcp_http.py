"""An MCP server on the loopback, with the library's own server, and a guard with logins before it."""

import json
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, nullcontext
from typing import Any

import anyio
import uvicorn
from mcp.server.mcpserver import Context, Image, MCPServer
from starlette.types import ASGIApp

PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000000c49444154789c63606060000000040001"
    "f61738550000000049454e44ae426082"
)


def toy() -> MCPServer:
    server = MCPServer("toy", instructions="Counts.")

    @server.tool()
    async def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    @server.tool()
    async def draw() -> Image:
        """Draw a picture."""
        return Image(data=PIXEL, format="png")

    @server.tool()
    async def count(ctx: Context[Any, Any]) -> str:
        """Count slowly."""
        for number in range(3):
            await ctx.report_progress(number + 1, 3, f"step {number + 1}")
        return "counted"

    return server


@asynccontextmanager
async def serving(app: ASGIApp) -> AsyncGenerator[str, None]:
    """Serve an application on the loopback, and give its address."""
    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=1))
    server.capture_signals = nullcontext  # type: ignore[method-assign]
    with listening:
        async with anyio.create_task_group() as group:
            group.start_soon(server.serve, [listening])
            try:
                yield f"http://127.0.0.1:{listening.getsockname()[1]}"
            finally:
                server.should_exit = True


def config(url: str, **keys: Any) -> dict[str, Any]:
    return {"mcp_config": [json.dumps({"mcpServers": {"toy": {"type": "http", "url": url, **keys}}})]}
