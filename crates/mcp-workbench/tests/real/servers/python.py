"""A server written with the official Python SDK, which speaks both eras, to stand behind the workbench.

python python.py stdio|http
  http  listens on a free port, and prints its URL as one line on stdout
"""

import asyncio
import json
import logging
import socket
import sys
import warnings
from typing import Annotated

import mcp_types as types
import uvicorn
from mcp.server.elicitation import ElicitationResult
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.resolve import Elicit, ListRoots, Resolve, Sample
from pydantic import BaseModel

# Both eras are used as they are, with what the newer one advises against.
warnings.simplefilter("ignore")
logging.disable(logging.INFO)

server = MCPServer("python", version="1.0.0", instructions="Ask away")
was_cancelled = asyncio.Event()


class Person(BaseModel):
    name: str


async def user() -> Elicit[Person]:
    return Elicit("What is your name?", Person)


async def model() -> Sample:
    question = types.TextContent(type="text", text="What is the capital of France?")
    return Sample([types.SamplingMessage(role="user", content=question)], max_tokens=50)


async def model_after_user(_user: Annotated[Person, Resolve(user)]) -> Sample:
    return await model()


async def roots() -> ListRoots:
    return ListRoots()


User = Annotated[ElicitationResult[Person], Resolve(user)]
Model = Annotated[types.CreateMessageResult, Resolve(model)]
Roots = Annotated[types.ListRootsResult, Resolve(roots)]


@server.tool()
async def add(a: float, b: float) -> float:
    return a + b


@server.tool()
async def fail() -> str:
    raise ValueError("It did not work")


@server.tool(structured_output=False)
async def count(ctx: Context) -> str:
    for step in (1, 2, 3):
        await ctx.report_progress(step, 3)
        # The clients forget a call with its answer, so the messages must be read one by one.
        await asyncio.sleep(0.03)
    return "counted"


@server.tool(structured_output=False)
async def say(ctx: Context) -> str:
    await ctx.debug("quiet")
    await ctx.warning("loud")
    await asyncio.sleep(0.03)
    return "said"


@server.tool(structured_output=False)
async def ask_user(answer: User) -> str:
    content = answer.data.model_dump() if answer.action == "accept" else None
    return json.dumps({"action": answer.action, "content": content})


@server.tool(structured_output=False)
async def ask_all(answer: User, capital: Model, folders: Roots) -> str:
    return json.dumps([answer.action, capital.content.text, [str(root.uri) for root in folders.roots]])


@server.tool(structured_output=False)
async def ask_twice(capital: Annotated[types.CreateMessageResult, Resolve(model_after_user)]) -> str:
    return capital.content.text


@server.tool(structured_output=False)
async def wait(ctx: Context) -> str:
    await ctx.report_progress(1, 2)
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        was_cancelled.set()
        raise
    return "never"


@server.tool(structured_output=False)
async def cancelled() -> str:
    await was_cancelled.wait()
    return "cancelled"


async def more() -> str:
    return "more"


@server.tool(structured_output=False)
async def grow(ctx: Context) -> str:
    server.add_tool(more, structured_output=False)
    await ctx.notify_tools_changed()
    return "grown"


@server.tool(structured_output=False)
async def touch(ctx: Context) -> str:
    await ctx.notify_resource_updated("note:///one")
    return "touched"


@server.resource("note:///one", mime_type="text/plain")
async def one() -> str:
    return "First note"


@server.prompt()
async def greet(name: str) -> str:
    return f"Say hello to {name}"


async def over_http():
    listener = socket.create_server(("127.0.0.1", 0))
    print(f"http://127.0.0.1:{listener.getsockname()[1]}/mcp", flush=True)
    config = uvicorn.Config(server.streamable_http_app(), log_level="error", timeout_graceful_shutdown=1)
    await uvicorn.Server(config).serve(sockets=[listener])


if sys.argv[1] == "http":
    asyncio.run(over_http())
else:
    server.run("stdio")
