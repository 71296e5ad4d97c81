// Opens the page in a browser, and gives a test what it needs: the page, calls of an MCP client, and proof that nothing
// was loaded from elsewhere and no script ran that is not the page's.

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import path from "node:path";

export const given = JSON.parse(process.argv[2]);
const require = createRequire(path.join(given.packages, "package.json"));
const { chromium } = require("playwright-core");

export const base = `http://${given.address}`;

export async function launch() {
  return chromium.launch({
    executablePath: given.chromium,
    // The name of an attacker that leads to this machine.
    args: ["--no-sandbox", "--host-resolver-rules=MAP evil.example 127.0.0.1"],
  });
}

// Opens a link in a fresh profile.
export async function enter(browser, link, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  const page = await context.newPage();
  const trouble = [];
  page.on("dialog", (dialog) => { trouble.push(`dialog: ${dialog.message()}`); dialog.dismiss(); });
  page.on("pageerror", (error) => trouble.push(`error: ${error.message}`));
  page.on("console", (message) => { if (message.type() === "error") trouble.push(`console: ${message.text()}`); });
  page.on("request", (request) => { if (!request.url().startsWith(base)) trouble.push(`request: ${request.url()}`); });
  await page.goto(base + link);
  return { context, page, trouble };
}

// Opens a view, and waits until all of it is there.
export async function show(page, name) {
  await page.getByRole("link", { name }).click();
  await page.getByRole("heading", { level: 1, name }).waitFor();
  await page.locator("main:not([aria-busy])").waitFor();
}

// An MCP client with a session.
export async function client(name, capabilities = {}) {
  let session = null;
  let number = 0;
  const send = async (body) => fetch(`${base}/mcp`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${given.token}`,
      accept: "application/json, text/event-stream",
      "content-type": "application/json",
      ...(session ? { "mcp-session-id": session } : {}),
    },
    body: JSON.stringify({ jsonrpc: "2.0", ...body }),
  });
  const ask = async (method, params) => {
    number += 1;
    const id = number;
    const response = await send({ id, method, params });
    session ||= response.headers.get("mcp-session-id");
    const text = await response.text();
    const lines = text.startsWith("{") ? [text] : text.split("\n").filter((line) => line.startsWith("data: {")).map((line) => line.slice(6));
    return lines.map((line) => JSON.parse(line)).find((message) => message.id === id && !message.method);
  };
  await ask("initialize", { protocolVersion: "2025-11-25", capabilities, clientInfo: { name, version: "1" } });
  await send({ method: "notifications/initialized" });
  const call = (tool, args) => ask("tools/call", { name: tool, arguments: args });
  return {
    open: (toolbox) => call("open_toolbox", { toolbox }),
    use: (toolbox, server, tool, args = {}) => call("use_tool", { tool: { toolbox, server, tool }, arguments: args }),
  };
}

export { assert };
