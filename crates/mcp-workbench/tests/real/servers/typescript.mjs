// A server written with the official TypeScript SDK, to stand behind the workbench in one era.
//
// node typescript.mjs PACKAGES ERA stdio|http
//   PACKAGES  the folder whose node_modules holds the SDK
//   ERA       `legacy` (only initialize) or `modern` (only requests that say their revision)
//   http      listens on a free port, and prints its URL as one line on stdout
//
// Its tools are the same in both eras: the SDK puts their questions as the era has it.

import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { Readable } from 'node:stream';

const [packages, era, transport] = process.argv.slice(2);
const require = createRequire(join(packages, 'package.json'));
const sdk = require('@modelcontextprotocol/server');
const { serveStdio, StdioServerTransport } = require('@modelcontextprotocol/server/stdio');
const z = require('zod');
const { inputRequired, inputResponse } = sdk;

// Long enough for two messages to be read one by one: the clients forget a call with its answer.
const pause = () => new Promise((resolve) => setTimeout(resolve, 30));
const text = (value) => ({ content: [{ type: 'text', text: typeof value === 'string' ? value : JSON.stringify(value) }] });

// Over HTTP each request has a server of its own, so what lasts stands here.
let cancelled = 0;
let onCancelled = () => {};
let grown = false;
let handler;
const instances = new Set();

const QUESTIONS = {
  ask_user: inputRequired.elicit({
    message: 'What is your name?',
    requestedSchema: { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] },
  }),
  ask_model: inputRequired.createMessage({
    messages: [{ role: 'user', content: { type: 'text', text: 'What is the capital of France?' } }],
    maxTokens: 50,
  }),
  ask_roots: inputRequired.listRoots(),
};

/** Asks, and says what was answered; `rounds` are asked one after the other. */
const asks = (...rounds) => (_, ctx) => {
  const answers = ctx.mcpReq.inputResponses ?? {};
  const before = JSON.parse(ctx.mcpReq.requestState() ?? '[]');
  const round = before.length;
  const asked = rounds[round];
  if (asked.some((name) => inputResponse(answers, name).kind === 'missing')) {
    const inputRequests = Object.fromEntries(asked.map((name) => [name, QUESTIONS[name]]));
    return inputRequired({ inputRequests, requestState: JSON.stringify(before) });
  }
  const said = [...before, asked.map((name) => short(inputResponse(answers, name)))];
  if (said.length === rounds.length) return text(said);
  const inputRequests = Object.fromEntries(rounds[said.length].map((name) => [name, QUESTIONS[name]]));
  return inputRequired({ inputRequests, requestState: JSON.stringify(said) });
};

function short(answer) {
  if (answer.kind === 'elicit') return { action: answer.action, content: answer.content ?? null };
  if (answer.kind === 'sampling') return answer.result.content.text ?? answer.result.content[0].text;
  return answer.roots.map((root) => root.uri);
}

async function report(ctx, progress, total) {
  const { progressToken } = ctx.mcpReq._meta ?? {};
  if (progressToken === undefined) return;
  await ctx.mcpReq.notify({ method: 'notifications/progress', params: { progressToken, progress, total } });
}

function tools(server) {
  const tool = (name, inputSchema, call) => server.registerTool(name, { description: name, inputSchema: z.object(inputSchema) }, call);
  server.registerTool(
    'add',
    {
      description: 'Adds two numbers',
      inputSchema: z.object({ a: z.number(), b: z.number() }),
      outputSchema: z.object({ sum: z.number() }),
    },
    ({ a, b }) => ({ ...text(`${a + b}`), structuredContent: { sum: a + b } }),
  );
  tool('fail', {}, () => ({ ...text('It did not work'), isError: true }));
  tool('count', {}, async (_, ctx) => {
    for (const step of [1, 2, 3]) {
      await report(ctx, step, 3);
      await pause();
    }
    return text('counted');
  });
  tool('ask_and_count', {}, async (args, ctx) => {
    const asked = await asks(['ask_user'])(args, ctx);
    if (sdk.isInputRequiredResult(asked)) return asked;
    for (const step of [1, 2]) {
      await report(ctx, step, 3);
      await pause();
    }
    await ctx.mcpReq.log('warning', 'counted');
    await pause();
    return asked;
  });
  tool('say', {}, async (_, ctx) => {
    await ctx.mcpReq.log('debug', 'quiet');
    await ctx.mcpReq.log('warning', 'loud', 'talker');
    await pause();
    return text('said');
  });
  tool('ask_user', {}, asks(['ask_user']));
  tool('ask_model', {}, asks(['ask_model']));
  tool('ask_roots', {}, asks(['ask_roots']));
  tool('ask_all', {}, asks(['ask_user', 'ask_model', 'ask_roots']));
  tool('ask_twice', {}, asks(['ask_user'], ['ask_model']));
  tool('wait', {}, async (_, ctx) => {
    const { signal } = ctx.mcpReq;
    const aborted = new Promise((resolve) => signal.addEventListener('abort', resolve));
    await report(ctx, 1, 2);
    await aborted;
    cancelled += 1;
    onCancelled();
    return text('nobody reads this');
  });
  // Answers once a call of `wait` was cancelled.
  tool('cancelled', {}, async () => {
    if (cancelled === 0) await new Promise((resolve) => { onCancelled = resolve; });
    return text(`${cancelled}`);
  });
  const more = server.registerTool('more', { description: 'Comes later', inputSchema: z.object({}) }, () => text('more'));
  if (!grown) more.disable();
  tool('grow', {}, async () => {
    grown = true;
    if (handler) handler.notify.toolsChanged();
    else more.enable();
    return text('grown');
  });
  tool('touch', {}, async () => {
    if (handler) handler.notify.resourceUpdated('note:///one');
    else await server.server.sendResourceUpdated({ uri: 'note:///one' });
    return text('touched');
  });
}

function factory() {
  const capabilities = { logging: {}, resources: { subscribe: true, listChanged: true }, tools: { listChanged: true } };
  const server = new sdk.McpServer({ name: 'typescript', version: '1.0.0' }, { capabilities, instructions: 'Ask away' });
  tools(server);
  server.registerResource('one', 'note:///one', { mimeType: 'text/plain' }, (uri) => ({
    contents: [{ uri: uri.href, mimeType: 'text/plain', text: 'First note' }],
  }));
  const template = new sdk.ResourceTemplate('note:///number/{number}', { list: undefined });
  server.registerResource('numbered', template, { mimeType: 'text/plain' }, (uri, { number }) => ({
    contents: [{ uri: uri.href, text: `Note number ${number}` }],
  }));
  server.registerPrompt('greet', { description: 'Greets', argsSchema: z.object({ name: z.string() }) }, ({ name }) => ({
    messages: [{ role: 'user', content: { type: 'text', text: `Say hello to ${name}` } }],
  }));
  if (era === 'legacy') {
    for (const method of ['resources/subscribe', 'resources/unsubscribe']) {
      server.server.setRequestHandler(method, () => ({}));
    }
  }
  instances.add(server);
  return server;
}

async function overHttp() {
  handler = sdk.createMcpHandler(factory, { legacy: era === 'legacy' ? 'stateless' : 'reject' });
  const http = createServer(async (request, response) => {
    const gone = new AbortController();
    response.on('close', () => gone.abort());
    const answer = await handler.fetch(
      new Request(`http://${request.headers.host}${request.url}`, {
        method: request.method,
        headers: request.headers,
        body: request.method === 'POST' ? Readable.toWeb(request) : undefined,
        duplex: 'half',
        signal: gone.signal,
      }),
    );
    response.writeHead(answer.status, Object.fromEntries(answer.headers));
    if (answer.body) Readable.fromWeb(answer.body).on('error', () => response.destroy()).pipe(response);
    else response.end();
  });
  http.listen(0, '127.0.0.1', () => console.log(`http://127.0.0.1:${http.address().port}/mcp`));
}

if (transport === 'http') await overHttp();
else if (era === 'modern') serveStdio(factory, { legacy: 'reject' });
else await factory().connect(new StdioServerTransport());
