// The official TypeScript SDK as a client of the workbench. Prints what it saw as one line of JSON;
// `clients.rs` beside this folder says what that must be.
//
// node typescript.mjs PACKAGES MODE COMMAND [ARGUMENT...]
// node typescript.mjs PACKAGES MODE URL
//   PACKAGES  the folder whose node_modules holds the SDK
//   MODE      `legacy` (initialize) or `auto` (server/discover first, then initialize)
//   COMMAND   starts the workbench, to be talked to over stdio
//   URL       where a workbench serves over HTTP; its token is in the variable WORKBENCH_TOKEN

import { createRequire } from 'node:module';
import { join } from 'node:path';

const [packages, mode, command, ...args] = process.argv.slice(2);
if (!command) fail('usage: node typescript.mjs PACKAGES MODE COMMAND [ARGUMENT...] or PACKAGES MODE URL');

// The SDK is not installed beside this file, so its place has to be named.
const require = createRequire(join(packages, 'package.json'));
const { Client, StreamableHTTPClientTransport } = require('@modelcontextprotocol/client');
const { StdioClientTransport } = require('@modelcontextprotocol/client/stdio');

function fail(reason) {
  console.error(`typescript.mjs: ${reason}`);
  process.exit(1);
}

function seen(result) {
  return { is_error: result.isError ?? false, text: result.content.map((block) => block.text) };
}

async function session(client) {
  const open = (toolbox) => client.callTool({ name: 'open_toolbox', arguments: { toolbox } });
  const use = (tool, args, options) =>
    client.callTool(
      { name: 'use_tool', arguments: { tool: { toolbox: 'dev', server: 'everything', tool }, arguments: args } },
      options,
    );

  const { tools } = await client.listTools();
  const metaTools = tools.map((tool) => tool.name).filter((name) => /^(open_toolbox|use_tool)$/.test(name));
  const notOpen = await use('echo', { message: 'too early' });
  const unknownToolbox = await open('nowhere');
  const opened = JSON.parse((await open('dev')).content[0].text);
  const echo = await use('echo', { message: 'Grüße' });
  const structured = await use('get-structured-content', { location: 'New York' });
  const image = await use('get-tiny-image', {});

  // The SDK forgets a call when its answer comes, and drops a progress notification that arrives in
  // the same read. The last one may, so it is left out.
  const progress = [];
  const onprogress = ({ progress: done, total }) => done < total && progress.push(`${done}/${total}`);
  const slow = await use('trigger-long-running-operation', { duration: 0.4, steps: 4 }, { onprogress });
  const unknownTool = await use('frobnicate', {});

  return {
    revision: client.getNegotiatedProtocolVersion(),
    server: client.getServerVersion()?.name,
    instructions: client.getInstructions(),
    meta_tools: metaTools,
    not_open: seen(notOpen),
    unknown_toolbox: seen(unknownToolbox),
    opened: {
      toolbox: opened.toolbox,
      description: opened.description,
      servers_connected: opened.servers_connected,
      echo: opened.tools
        .filter((tool) => tool.name === 'echo')
        .map(({ title, server, toolbox }) => ({ title, server, toolbox })),
    },
    echo: seen(echo),
    structured: structured.structuredContent,
    image: image.content.filter((block) => block.type === 'image').map((block) => block.mimeType),
    progress,
    slow: seen(slow),
    unknown_tool: seen(unknownTool),
  };
}

const client = new Client(
  { name: 'mcp-workbench-tests', version: '1.0.0' },
  { versionNegotiation: { mode } },
);
// The SDK hands on next to nothing of its environment, and the workbench must not find what others have kept.
const overHttp = command.startsWith('http://');
const transport = overHttp
  ? new StreamableHTTPClientTransport(new URL(command), {
      authProvider: { token: async () => process.env.WORKBENCH_TOKEN },
    })
  : new StdioClientTransport({ command, args, env: { XDG_CACHE_HOME: process.env.XDG_CACHE_HOME } });
try {
  await client.connect(transport);
  const summary = await session(client);
  if (overHttp) await transport.terminateSession();
  await client.close();
  console.log(JSON.stringify(summary));
} catch (error) {
  fail(error.stack ?? error);
}
