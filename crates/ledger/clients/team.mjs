// A user of a team, with an official SDK: makes calls until its stdin ends, and prints each before it is sent and when its
// outcome is known. The ledger says what must be true of these lines.
//
// node team.mjs PACKAGES SDK ADDRESS NAME FIRST WORKERS
//   PACKAGES  the folder whose node_modules holds the SDKs
//   SDK       sdk or client, with sessions; modern, without
//   NAME      the client at the authorization server, whose secret is its name and `-secret`
//   FIRST     the nonce of the first call
//   WORKERS   how many calls it makes at once

import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const [packages, sdk, address, name, first, workers] = process.argv.slice(2);
const require = createRequire(join(packages, 'package.json'));
const load = (path) => import(pathToFileURL(require.resolve(path)));
const print = (line) => process.stdout.write(`${JSON.stringify(line)}\n`);
const now = () => performance.timeOrigin + performance.now();
const pick = (from, to) => from + Math.floor(Math.random() * (to - from));

async function parts() {
  if (sdk !== 'sdk') return load('@modelcontextprotocol/client');
  const { Client } = await load('@modelcontextprotocol/sdk/client/index.js');
  const { StreamableHTTPClientTransport } = await load('@modelcontextprotocol/sdk/client/streamableHttp.js');
  const { ClientCredentialsProvider } = await load('@modelcontextprotocol/sdk/client/auth-extensions.js');
  return { Client, StreamableHTTPClientTransport, ClientCredentialsProvider };
}

const { Client, StreamableHTTPClientTransport, ClientCredentialsProvider } = await parts();

/** Connects; only the first connection is tried again, since a session must not be lost. */
async function connect() {
  const mode = sdk === 'modern' ? { pin: '2026-07-28' } : 'legacy';
  const options = sdk === 'sdk' ? {} : { versionNegotiation: { mode }, capabilities: { elicitation: { form: {} } } };
  for (let attempt = 0; ; attempt++) {
    const authProvider = new ClientCredentialsProvider({ clientId: name, clientSecret: `${name}-secret`, scope: 'tools' });
    const transport = new StreamableHTTPClientTransport(new URL(address), { authProvider });
    const client = new Client({ name: 'team', version: '1' }, options);
    if (sdk !== 'sdk') {
      client.setRequestHandler('elicitation/create', () => ({ action: 'accept', content: { user: name } }));
    }
    try {
      await client.connect(transport);
      return client;
    } catch (error) {
      if (attempt === 50) throw error;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }
}

const client = await connect();
let nonce = Number(first);
let isOver = false;
process.stdin.resume();
process.stdin.on('end', () => (isOver = true));

/** The tool of a call, its arguments, and how long it takes. */
function plan() {
  const dice = Math.random();
  if (dice < 0.6) return { tool: 'echo', args: {}, ms: 0 };
  if (dice < 0.8) return { tool: 'sleep', args: {}, ms: pick(20, 300) };
  // Longer than a response waits before it becomes a stream, which can be resumed.
  if (dice < 0.87) return { tool: 'sleep', args: {}, ms: pick(1100, 1500) };
  if (dice < 0.95 || sdk === 'sdk') return { tool: 'echo', args: { pad: true }, ms: 0 };
  return { tool: 'ask', args: {}, ms: 0 };
}

/** The words by which a text is this user's and this call's. */
const sign = (id) => `<${name} ${id}>`;

/** Reads a further page of a large result, wherever the balancer sends that. */
async function readOn(id, uri) {
  try {
    const { contents } = await client.readResource({ uri: `${uri}/2` });
    return contents[0].text.includes(sign(id)) ? 'own' : `foreign: ${contents[0].text.slice(0, 80)}`;
  } catch (error) {
    return `none: ${error.message}`;
  }
}

/** What came back: the nonce in it, and whose answer to a question it has. */
function seen(tool, result) {
  const sent = result.structuredContent?.arguments ?? result.structuredContent?.call?.arguments;
  const answered = result.structuredContent?.reply?.result?.content?.user;
  return { nonce: sent?.nonce ?? null, ...(tool === 'ask' ? { answered: answered ?? null } : {}) };
}

async function call() {
  const id = nonce++;
  const { tool, args, ms } = plan();
  const words = args.pad ? { pad: sign(id).repeat(600) } : {};
  print({ sent: id, at: now(), ms, tool });
  let done;
  try {
    const used = { toolbox: 'team', server: 'ledger', tool };
    const params = { name: 'use_tool', arguments: { tool: used, arguments: { nonce: id, ms, ...words } } };
    const result = await client.callTool(params);
    const uri = result._meta?.['mcp-workbench/result']?.uri;
    const failure = result._meta?.['mcp-workbench/error'];
    if (uri) {
      done = { at: now(), cut: result.content.some(({ text }) => text?.includes(sign(id))), page: await readOn(id, uri) };
    } else if (failure) {
      done = { at: now(), code: failure.code, outcome: failure.outcome };
    } else {
      done = { at: now(), ...seen(tool, result) };
    }
  } catch (error) {
    done = { at: now(), error: `${error.name} ${error.code ?? ''} ${error.message}`.slice(0, 300) };
  }
  print({ done: id, ...done });
}

async function work() {
  while (!isOver) {
    await call();
    await new Promise((resolve) => setTimeout(resolve, pick(5, 40)));
  }
}

print({ ready: sdk });
await Promise.all(Array.from({ length: Number(workers) }, work));
process.exit(0);
