// A host of MCP Apps: the official TypeScript SDK as the client, the bridge of the official Apps SDK, and an app at the
// other end of the bridge instead of an iframe. Prints what it saw as one line of JSON, by tool; `apps.rs` beside this
// folder says what that must be.
//
// node apps.mjs PACKAGES MODE TOOLBOX COMMAND [ARGUMENT...]
//   PACKAGES  the folder whose node_modules holds the SDKs
//   MODE      `legacy` (initialize) or `auto` (server/discover first, then initialize)
//   TOOLBOX   the toolbox to open first, or `-` for none
//   COMMAND   starts the server to be talked to

import { createHash } from 'node:crypto';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const [packages, mode, toolbox, command, ...args] = process.argv.slice(2);
if (!command) fail('usage: node apps.mjs PACKAGES MODE TOOLBOX COMMAND [ARGUMENT...]');

// The SDKs are not installed beside this file, so their place has to be named.
const require = createRequire(join(packages, 'package.json'));
const { Client, InMemoryTransport } = require('@modelcontextprotocol/client');
const { StdioClientTransport } = require('@modelcontextprotocol/client/stdio');
const sdk = (file) => import(pathToFileURL(join(packages, 'node_modules/@modelcontextprotocol/ext-apps/dist/src', file)));
const { AppBridge, getToolUiResourceUri } = await sdk('app-bridge.js');
const { App } = await sdk('app.js');

const identity = { name: 'mcp-workbench-tests', version: '1.0.0' };

function fail(reason) {
  console.error(`apps.mjs: ${reason}`);
  process.exit(1);
}

// Connects an app to the host in the way of an iframe. What the app asks for, the bridge asks the client's server for.
async function render(client) {
  const bridge = new AppBridge(client, identity, { serverTools: {}, serverResources: {} });
  const app = new App(identity, {}, { autoResize: false });
  const [host, view] = InMemoryTransport.createLinkedPair();
  await bridge.connect(host);
  await app.connect(view);
  return app;
}

async function interfaceOf(client, tool) {
  const uri = getToolUiResourceUri(tool);
  if (!uri) return null;
  const { contents } = await client.readResource({ uri });
  const [{ mimeType, text }] = contents;
  return { mimeType, digest: createHash('sha256').update(text).digest('hex') };
}

const client = new Client(identity, {
  capabilities: { extensions: { 'io.modelcontextprotocol/ui': { mimeTypes: ['text/html;profile=mcp-app'] } } },
  versionNegotiation: { mode },
});
// The SDK hands on next to nothing of its environment, and the workbench must not find what others have kept.
const env = { XDG_CACHE_HOME: process.env.XDG_CACHE_HOME, PATH: process.env.PATH };
try {
  await client.connect(new StdioClientTransport({ command, args, env }));
  if (toolbox !== '-') await client.callTool({ name: 'open_toolbox', arguments: { toolbox } });
  const { tools } = await client.listTools();
  const app = await render(client);
  const seen = {};
  for (const tool of tools.filter(({ _meta }) => _meta?.ui)) {
    const result = await app.callServerTool({ name: tool.name, arguments: {} });
    seen[tool.name] = {
      ui: tool._meta.ui,
      flat: tool._meta['ui/resourceUri'] ?? null,
      interface: await interfaceOf(client, tool),
      is_error: result.isError ?? false,
      members: Object.keys(result.structuredContent ?? {}),
    };
  }
  await client.close();
  console.log(JSON.stringify(seen));
  process.exit(0);
} catch (error) {
  fail(error.stack ?? error);
}
