"""The official Python SDK as a client of the workbench.

Prints what it saw as one line of JSON; `clients.rs` beside this folder says what that must be.

python python.py MODE COMMAND [ARGUMENT...]
python python.py MODE URL
  MODE     `legacy` (initialize) or `auto` (server/discover first, then initialize)
  COMMAND  starts the workbench, to be talked to over stdio
  URL      where a workbench serves over HTTP; its token is in the variable WORKBENCH_TOKEN
"""

import asyncio
import contextlib
import json
import os
import sys

from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client


def seen(result):
    return {
        "is_error": bool(result.is_error),
        "text": [getattr(block, "text", None) for block in result.content],
    }


async def session(client):
    async def open_toolbox(toolbox):
        return await client.call_tool("open_toolbox", {"toolbox": toolbox})

    async def use(tool, arguments, **options):
        identifier = {"toolbox": "dev", "server": "everything", "tool": tool}
        return await client.call_tool("use_tool", {"tool": identifier, "arguments": arguments}, **options)

    progress = []

    async def on_progress(done, total, _message):
        # The last one is left out, as `typescript.mjs` explains.
        if done < total:
            progress.append(f"{done:g}/{total:g}")

    tools = (await client.list_tools()).tools
    not_open = await use("echo", {"message": "too early"})
    unknown_toolbox = await open_toolbox("nowhere")
    opened = json.loads((await open_toolbox("dev")).content[0].text)
    echo = await use("echo", {"message": "Grüße"})
    structured = await use("get-structured-content", {"location": "New York"})
    image = await use("get-tiny-image", {})
    slow = await use("trigger-long-running-operation", {"duration": 0.4, "steps": 4}, progress_callback=on_progress)
    unknown_tool = await use("frobnicate", {})

    return {
        "revision": client.protocol_version,
        "server": client.server_info and client.server_info.name,
        "instructions": client.instructions,
        "meta_tools": [tool.name for tool in tools if tool.name in ("open_toolbox", "use_tool")],
        "not_open": seen(not_open),
        "unknown_toolbox": seen(unknown_toolbox),
        "opened": {
            "toolbox": opened["toolbox"],
            "description": opened["description"],
            "servers_connected": opened["servers_connected"],
            "echo": [
                {key: tool[key] for key in ("title", "server", "toolbox")}
                for tool in opened["tools"]
                if tool["name"] == "echo"
            ],
        },
        "echo": seen(echo),
        "structured": structured.structured_content,
        "image": [block.mime_type for block in image.content if block.type == "image"],
        "progress": progress,
        "slow": seen(slow),
        "unknown_tool": seen(unknown_tool),
    }


@contextlib.asynccontextmanager
async def server(command, *arguments):
    if not command.startswith("http://"):
        # The SDK hands on next to nothing of its environment, and the workbench must not find what others have kept.
        env = {"XDG_CACHE_HOME": os.environ["XDG_CACHE_HOME"]}
        yield StdioServerParameters(command=command, args=arguments, env=env)
        return
    authorization = {"Authorization": f"Bearer {os.environ['WORKBENCH_TOKEN']}"}
    async with create_mcp_http_client(headers=authorization) as http:
        yield streamable_http_client(command, http_client=http)


async def main():
    if len(sys.argv) < 3:
        sys.exit("usage: python python.py MODE COMMAND [ARGUMENT...] or MODE URL")
    mode, *rest = sys.argv[1:]
    async with server(*rest) as target, Client(target, mode=mode) as client:
        summary = await session(client)
    print(json.dumps(summary))


asyncio.run(main())
