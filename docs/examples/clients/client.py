"""A client of MCP Workbench with the official Python SDK.

Starts the workbench over stdio, lists the toolboxes, opens one, uses a tool and handles errors.

    pip install "mcp>=2"
    python client.py         (mcp-workbench on the PATH)

`serve --demo` serves a built-in toolbox. For your own: args=["--config", "/path/to/workbench-config.json"].
"""

import asyncio
import json
import os

from mcp import Client, StdioServerParameters, stdio_client


class CallError(Exception):
    """A call that failed: in the workbench (`error` is set), or in the tool itself (`error` is None).

    `error["code"]` is stable. `error["outcome"]` is `not_sent` (safe to repeat), `rejected` or `unknown` (the tool may
    have run); it is absent if the server answered.
    """

    def __init__(self, message, error):
        super().__init__(message)
        self.error = error


def text_of(result):
    return "\n".join(block.text if block.type == "text" else f"[{block.type}]" for block in result.content)


async def call(client, name, arguments):
    """Calls a meta-tool. Failures arrive as results with `isError`, not as exceptions."""
    result = await client.call_tool(name, arguments)
    if result.is_error:
        raise CallError(text_of(result), (result.meta or {}).get("mcp-workbench/error"))
    return result


async def open_toolbox(client, toolbox):
    return json.loads(text_of(await call(client, "open_toolbox", {"toolbox": toolbox})))


async def use_tool(client, tool, arguments):
    """Runs a tool. `tool` has three separate fields: `toolbox`, `server` and `tool`."""
    return await call(client, "use_tool", {"tool": tool, "arguments": arguments})


async def session(client):
    tools = (await client.list_tools()).tools
    print("meta-tools:", ", ".join(tool.name for tool in tools))
    parameters = next(tool.input_schema["properties"] for tool in tools if tool.name == "open_toolbox")
    print("toolboxes:", ", ".join(parameters["toolbox"]["enum"]))

    opened = await open_toolbox(client, "desk")
    print(f"{opened['toolbox']}: {opened['servers_connected']} servers, {len(opened['tools'])} tools")
    for error in opened.get("_errors", []):
        print("not up:", error)

    found = next(tool for tool in opened["tools"] if tool["name"] == "evaluate")
    evaluate = {"toolbox": found["toolbox"], "server": found["server"], "tool": found["name"]}
    result = await use_tool(client, evaluate, {"expression": "6 * 7"})
    print("6 * 7:", text_of(result))

    for tool, expression in [(evaluate, "6 / 0"), ({**evaluate, "tool": "evalute"}, "6 * 7")]:
        try:
            await use_tool(client, tool, {"expression": expression})
        except CallError as failure:
            who = "tool"
            if failure.error:
                who = f"workbench ({failure.error['code']}, {failure.error.get('outcome')})"
            print(f"failed in the {who}: {failure}")


async def main():
    workbench = StdioServerParameters(command="mcp-workbench", args=["serve", "--demo"])
    with open(os.devnull, "w") as log:
        async with Client(stdio_client(workbench, errlog=log)) as client:
            await session(client)


asyncio.run(main())
