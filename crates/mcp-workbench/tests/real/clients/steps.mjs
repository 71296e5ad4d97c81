// The official TypeScript SDK as a client that takes steps. Prints a line of JSON for the greeting and one
// for each step; `steps.rs` beside this folder makes the steps, and `steps.py` takes the same ones.
//
// node steps.mjs PACKAGES ERA STEPS COMMAND [ARGUMENT...]
// node steps.mjs PACKAGES ERA STEPS URL
//   PACKAGES  the folder whose node_modules holds the SDK
//   ERA       `legacy` (initialize) or `modern` (2026-07-28 and nothing else)
//   STEPS     a list of steps in JSON
//   URL       its token is in the variable WORKBENCH_TOKEN, if it wants one

import { createRequire } from 'node:module';
import { join } from 'node:path';

const [packages, era, steps, command, ...args] = process.argv.slice(2);
const require = createRequire(join(packages, 'package.json'));
const { Client, StreamableHTTPClientTransport } = require('@modelcontextprotocol/client');
const { StdioClientTransport } = require('@modelcontextprotocol/client/stdio');

const LOG_LEVEL = 'io.modelcontextprotocol/logLevel';
const FAR_TOO_LONG = 30_000;

const print = (value) => console.log(JSON.stringify(value));

// What happened during the step.
let asked, progress, log, heard, onHeard;
// How the step wants the user to decide.
let decision;

function reset(step) {
  [asked, progress, log, heard] = [[], [], [], []];
  decision = step.answer ?? 'accept';
  onHeard = () => {};
}

function prepare(client) {
  client.setRequestHandler('elicitation/create', ({ params }) => {
    asked.push({ elicitation: params.message });
    if (params.mode === 'url' || decision !== 'accept') return { action: decision };
    return { action: 'accept', content: { name: 'Ada' } };
  });
  client.setRequestHandler('sampling/createMessage', ({ params }) => {
    const { content } = params.messages[0];
    asked.push({ sampling: (Array.isArray(content) ? content[0] : content).text });
    return { role: 'assistant', model: 'none', stopReason: 'endTurn', content: { type: 'text', text: 'Paris' } };
  });
  client.setRequestHandler('roots/list', () => {
    asked.push({ roots: true });
    return { roots: [{ uri: 'file:///home/ada', name: 'Home' }] };
  });
  client.setNotificationHandler('notifications/message', ({ params }) => {
    log.push({ level: params.level, data: params.data });
  });
  for (const what of ['tools/list_changed', 'prompts/list_changed', 'resources/list_changed', 'resources/updated']) {
    client.setNotificationHandler(`notifications/${what}`, ({ params }) => {
      heard.push(params?.uri ? `${what} ${params.uri}` : what);
      onHeard();
    });
  }
}

const legacyLevel = {};

async function call(client, { name, arguments: args, log: level }, options) {
  const params = { name, arguments: args };
  if (level && era === 'modern') params._meta = { [LOG_LEVEL]: level };
  if (level && era === 'legacy' && legacyLevel.value !== level) {
    await client.setLoggingLevel(level);
    legacyLevel.value = level;
  }
  return client.callTool(params, options);
}

/** Calls, and takes the call back as soon as it reports something. */
async function cancel(client, step) {
  const controller = new AbortController();
  const onprogress = () => controller.abort('no longer wanted');
  try {
    return { result: await call(client, step, { signal: controller.signal, onprogress }) };
  } catch (error) {
    if (!controller.signal.aborted) throw error;
    return { cancelled: true };
  }
}

/** Listens while a tool is called that changes something, until the change is told. */
async function listen(client, step) {
  const uris = step.filter.resourceSubscriptions ?? [];
  const told = new Promise((resolve, reject) => {
    onHeard = resolve;
    setTimeout(() => reject(new Error('nothing was told')), FAR_TOO_LONG).unref();
  });
  let subscription;
  if (era === 'modern') subscription = await client.listen(step.filter);
  else for (const uri of uris) await client.subscribeResource({ uri });
  const result = await call(client, step);
  await told;
  if (subscription) await subscription.close();
  else for (const uri of uris) await client.unsubscribeResource({ uri });
  return { result, heard, honored: subscription?.honoredFilter };
}

const refresh = { cacheMode: 'refresh' };

/** Calls, and reads what a link in the result leads to, page by page to the end. */
async function whole(client, step) {
  const { content } = await call(client, step);
  let uri = content.find(({ type }) => type === 'resource_link').uri;
  const pages = [];
  while (uri) {
    const { contents } = await client.readResource({ uri }, refresh);
    pages.push(contents[0].text);
    uri = contents[0]._meta['mcp-workbench/page'].next;
  }
  return { shown: content.map(({ type }) => type), text: pages.join(''), pages: pages.length };
}

const DO = {
  tools: async (client) => ({ result: await client.listTools({}, refresh) }),
  prompts: async (client) => ({ result: await client.listPrompts({}, refresh) }),
  resources: async (client) => ({ result: await client.listResources({}, refresh) }),
  templates: async (client) => ({ result: await client.listResourceTemplates({}, refresh) }),
  read: async (client, { uri }) => ({ result: await client.readResource({ uri }, refresh) }),
  prompt: async (client, step) => ({ result: await client.getPrompt({ name: step.name, arguments: step.arguments }) }),
  complete: async (client, { params }) => ({ result: await client.complete(params) }),
  call: async (client, step) => {
    // The SDK forgets a call with its answer, and with it a report that comes in the same read.
    const onprogress = ({ progress: done, total }) => done < total && progress.push(`${done}/${total}`);
    return { result: await call(client, step, step.progress ? { onprogress } : {}), progress };
  },
  together: async (client, { names }) => ({
    results: await Promise.all(names.map(async (name) => (await call(client, { name, arguments: {} })).content)),
  }),
  cancel,
  listen,
  whole,
};

async function take(client, step) {
  reset(step);
  let outcome;
  try {
    outcome = await DO[step.do](client, step);
  } catch (error) {
    if (typeof error.code !== 'number') throw error;
    outcome = { error: { code: error.code, message: error.message } };
  }
  print({ step: step.as, ...outcome, asked, log });
}

const client = new Client(
  { name: 'mcp-workbench-tests', version: '1.0.0' },
  {
    versionNegotiation: { mode: era === 'modern' ? { pin: '2026-07-28' } : 'legacy' },
    capabilities: { elicitation: { form: {}, url: {} }, sampling: {}, roots: {} },
  },
);
const token = process.env.WORKBENCH_TOKEN;
// The SDK hands on next to nothing of its environment, and the workbench must not find what others have kept.
const overHttp = command.startsWith('http://');
const transport = overHttp
  ? new StreamableHTTPClientTransport(new URL(command), token ? { authProvider: { token: async () => token } } : {})
  : new StdioClientTransport({ command, args, env: { XDG_CACHE_HOME: process.env.XDG_CACHE_HOME ?? '' } });
reset({});
prepare(client);
await client.connect(transport);
print({
  step: 'greeting',
  version: client.getNegotiatedProtocolVersion(),
  server: client.getServerVersion()?.name,
  instructions: client.getInstructions(),
  capabilities: client.getServerCapabilities(),
});
for (const step of JSON.parse(steps)) await take(client, step);
if (overHttp && era === 'legacy') await transport.terminateSession();
await client.close();
