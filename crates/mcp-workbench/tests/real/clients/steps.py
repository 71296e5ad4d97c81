"""The official Python SDK as a client that takes steps.

Prints a line of JSON for the greeting and one for each step; `steps.rs` beside this folder makes the steps, and
`steps.mjs` takes the same ones.

python steps.py ERA STEPS COMMAND [ARGUMENT...]
python steps.py ERA STEPS URL
  ERA    `legacy` (initialize) or `modern` (asks what the server speaks, and must not fall back)
  STEPS  a list of steps in JSON
  URL    its token is in the variable WORKBENCH_TOKEN, if it wants one
"""

import asyncio
import contextlib
import json
import os
import sys
import warnings

import mcp_types as types
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client
from mcp.client.subscriptions import (
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    ToolsListChanged,
)
from mcp.shared.exceptions import MCPError

# Both eras are used as they are, with what the newer one advises against.
warnings.simplefilter("ignore")

LOG_LEVEL = "io.modelcontextprotocol/logLevel"
FAR_TOO_LONG = 30
LISTS = {
    ToolsListChanged: "tools/list_changed",
    PromptsListChanged: "prompts/list_changed",
    ResourcesListChanged: "resources/list_changed",
}


def plain(result):
    return result.model_dump(mode="json", by_alias=True, exclude_none=True)


def merged(pages, items):
    """One list of all pages, as the other SDK has it."""
    whole = plain(pages[0])
    whole[items] = [item for page in pages for item in plain(page)[items]]
    whole.pop("nextCursor", None)
    return whole


class Steps:
    def __init__(self, era):
        self.era = era
        self.client = None
        self.level = None
        self.reset({})

    def reset(self, step):
        self.asked, self.progress, self.log, self.heard = [], [], [], []
        self.decision = step.get("answer", "accept")
        self.told = asyncio.Event()

    async def on_elicitation(self, _context, params):
        self.asked.append({"elicitation": params.message})
        if params.mode == "url" or self.decision != "accept":
            return types.ElicitResult(action=self.decision)
        return types.ElicitResult(action="accept", content={"name": "Ada"})

    async def on_sampling(self, _context, params):
        content = params.messages[0].content
        self.asked.append({"sampling": (content[0] if isinstance(content, list) else content).text})
        text = types.TextContent(type="text", text="Paris")
        return types.CreateMessageResult(role="assistant", model="none", stop_reason="endTurn", content=text)

    async def on_roots(self, _context):
        self.asked.append({"roots": True})
        return types.ListRootsResult(roots=[types.Root(uri="file:///home/ada", name="Home")])

    async def on_log(self, params):
        self.log.append({"level": params.level, "data": params.data})

    async def on_message(self, message):
        method = getattr(message, "method", "")
        what = method.removeprefix("notifications/")
        # What a stream of its own tells is heard there.
        if self.era == "legacy" and (what.endswith("list_changed") or what == "resources/updated"):
            uri = getattr(message.params, "uri", None)
            self.heard.append(f"{what} {uri}" if uri else what)
            self.told.set()

    async def on_progress(self, done, total, _message):
        if done < total:
            self.progress.append(f"{done:g}/{total:g}")

    async def use(self, step, **options):
        level = step.get("log")
        if level and self.era == "modern":
            options["meta"] = {LOG_LEVEL: level}
        if level and self.era == "legacy" and level != self.level:
            await self.client.set_logging_level(level)
            self.level = level
        return plain(await self.client.call_tool(step["name"], step["arguments"], **options))

    async def pages(self, method, items):
        pages, cursor = [], None
        while not pages or cursor:
            page = await method(cursor=cursor, cache_mode="refresh")
            pages.append(page)
            cursor = page.next_cursor
        return {"result": merged(pages, items)}

    async def do_tools(self, _step):
        return await self.pages(self.client.list_tools, "tools")

    async def do_prompts(self, _step):
        return await self.pages(self.client.list_prompts, "prompts")

    async def do_resources(self, _step):
        return await self.pages(self.client.list_resources, "resources")

    async def do_templates(self, _step):
        return await self.pages(self.client.list_resource_templates, "resourceTemplates")

    async def do_read(self, step):
        return {"result": plain(await self.client.read_resource(step["uri"], cache_mode="refresh"))}

    async def do_prompt(self, step):
        return {"result": plain(await self.client.get_prompt(step["name"], step["arguments"]))}

    async def do_complete(self, step):
        params = step["params"]
        reference = types.PromptReference(type="ref/prompt", name=params["ref"]["name"])
        return {"result": plain(await self.client.complete(reference, params["argument"]))}

    async def do_call(self, step):
        options = {"progress_callback": self.on_progress} if step.get("progress") else {}
        return {"result": await self.use(step, **options), "progress": self.progress}

    async def do_together(self, step):
        calls = [self.use({"name": name, "arguments": {}}) for name in step["names"]]
        return {"results": [result["content"] for result in await asyncio.gather(*calls)]}

    async def do_cancel(self, step):
        """Calls, and takes the call back as soon as it reports something."""
        reported = asyncio.Event()

        async def on_progress(_done, _total, _message):
            reported.set()

        calling = asyncio.create_task(self.use(step, progress_callback=on_progress))
        await asyncio.wait_for(reported.wait(), FAR_TOO_LONG)
        calling.cancel()
        try:
            return {"result": await calling}
        except asyncio.CancelledError:
            return {"cancelled": True}

    async def do_whole(self, step):
        """Calls, and reads what a link in the result leads to, page by page to the end."""
        content = (await self.use(step))["content"]
        uri = next(item["uri"] for item in content if item["type"] == "resource_link")
        pages = []
        while uri:
            page = plain(await self.client.read_resource(uri, cache_mode="refresh"))["contents"][0]
            pages.append(page["text"])
            uri = page["_meta"]["mcp-workbench/page"].get("next")
        return {"shown": [item["type"] for item in content], "text": "".join(pages), "pages": len(pages)}

    async def do_listen(self, step):
        """Listens while a tool changes something, until the change is announced."""
        wanted = step["filter"]
        uris = wanted.get("resourceSubscriptions", [])
        if self.era == "legacy":
            for uri in uris:
                await self.client.subscribe_resource(uri)
            result = await self.use(step)
            await asyncio.wait_for(self.told.wait(), FAR_TOO_LONG)
            for uri in uris:
                await self.client.unsubscribe_resource(uri)
            return {"result": result, "heard": self.heard}
        listening = self.client.listen(
            tools_list_changed=wanted.get("toolsListChanged", False),
            prompts_list_changed=wanted.get("promptsListChanged", False),
            resource_subscriptions=uris,
        )
        async with listening as subscription:
            result = await self.use(step)
            event = await asyncio.wait_for(anext(aiter(subscription)), FAR_TOO_LONG)
            name = f"resources/updated {event.uri}" if isinstance(event, ResourceUpdated) else LISTS[type(event)]
            return {"result": result, "heard": [name], "honored": plain(subscription.honored)}

    async def take(self, step):
        self.reset(step)
        try:
            outcome = await getattr(self, f"do_{step['do']}")(step)
        except MCPError as error:
            outcome = {"error": {"code": error.code, "message": error.message}}
        show({"step": step["as"], **outcome, "asked": self.asked, "log": self.log})


def show(value):
    print(json.dumps(value), flush=True)


@contextlib.asynccontextmanager
async def server(command, *arguments):
    if not command.startswith("http://"):
        # The SDK hands on next to nothing of its environment, and the workbench must not find what others have kept.
        env = {"XDG_CACHE_HOME": os.environ.get("XDG_CACHE_HOME", "")}
        yield StdioServerParameters(command=command, args=arguments, env=env)
        return
    token = os.environ.get("WORKBENCH_TOKEN")
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    async with create_mcp_http_client(headers=headers) as http:
        yield streamable_http_client(command, http_client=http)


async def main():
    era, steps, *rest = sys.argv[1:]
    taken = Steps(era)
    async with server(*rest) as target:
        client = Client(
            target,
            mode="legacy" if era == "legacy" else "auto",
            elicitation_callback=taken.on_elicitation,
            sampling_callback=taken.on_sampling,
            list_roots_callback=taken.on_roots,
            logging_callback=taken.on_log,
            message_handler=taken.on_message,
        )
        async with client:
            taken.client = client
            show(
                {
                    "step": "greeting",
                    "version": client.protocol_version,
                    "server": client.server_info and client.server_info.name,
                    "instructions": client.instructions,
                    "capabilities": plain(client.server_capabilities),
                }
            )
            for step in json.loads(steps):
                await taken.take(step)


asyncio.run(main())
