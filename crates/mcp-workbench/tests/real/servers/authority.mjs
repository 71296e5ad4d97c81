// A certified authorization server (npm oidc-provider) and an MCP server of the official TypeScript SDK that it protects.
//
// node authority.mjs PACKAGES
//   PACKAGES  the folder whose node_modules holds both
//
// Prints the address of the MCP server as its first line on stdout, and then what the authority does, a word a line:
// `registered`, `granted`, `refreshed`, `rotated`, `revoked`, `reused`. Each line on stdin is done and answered with `done`:
// `expire` makes the access tokens of all clients void, `forget` all that was ever granted, and `nothing` nothing.
//
// The forms to sign in and to consent are the authority's own. Its tokens mean nothing to the MCP server, which asks the
// authority about each (RFC 7662) and takes only those that were issued for itself.

import { randomBytes } from 'node:crypto';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { Readable } from 'node:stream';
import { pathToFileURL } from 'node:url';

const [packages] = process.argv.slice(2);
const require = createRequire(join(packages, 'package.json'));
const sdk = require('@modelcontextprotocol/server');
const z = require('zod');
// It is a module of the newer kind only. What it has to say to its developers is nothing to a test.
console.info = console.warn = () => {};
const { default: Provider } = await import(pathToFileURL(require.resolve('oidc-provider')));

const READ = 'notes:read';
const WRITE = 'notes:write';
const RESOURCE_SERVER = { client_id: 'notes', client_secret: randomBytes(32).toString('hex') };

/** A server on a free port of this machine that answers nothing yet, and its address. */
async function listening() {
  const server = createServer();
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return [server, `http://127.0.0.1:${server.address().port}`];
}

const [authority, issuer] = await listening();
const [resource, origin] = await listening();
const resourceUrl = new URL('/mcp', origin);

// What was granted, so that it can be made void at once. Everything else that is stored joins it.
const stored = { AccessToken: new Map(), RefreshToken: new Map(), Grant: new Map() };
const VOID = { expire: ['AccessToken'], forget: Object.keys(stored), nothing: [] };

/** What the authority stores, in memory. */
class Storage {
  constructor(kind) {
    this.items = stored[kind] ??= new Map();
  }
  async upsert(id, payload) {
    this.items.set(id, payload);
  }
  async find(id) {
    return this.items.get(id);
  }
  async findByUid(uid) {
    return [...this.items.values()].find((it) => it.uid === uid);
  }
  async consume(id) {
    this.items.get(id).consumed = Math.floor(Date.now() / 1000);
  }
  async destroy(id) {
    this.items.delete(id);
  }
  async revokeByGrantId(grantId) {
    for (const [id, it] of this.items) if (it.grantId === grantId) this.items.delete(id);
  }
}

const provider = new Provider(issuer, {
  adapter: Storage,
  clients: [{ ...RESOURCE_SERVER, redirect_uris: [], response_types: [], grant_types: [] }],
  scopes: ['openid', 'offline_access', READ, WRITE],
  cookies: { keys: [randomBytes(32).toString('hex')] },
  features: {
    introspection: { enabled: true, allowedPolicy: (_, client) => client.clientId === RESOURCE_SERVER.client_id },
    registration: { enabled: true },
    resourceIndicators: {
      enabled: true,
      getResourceServerInfo: (_, indicator) => {
        if (indicator !== resourceUrl.href) throw new Error(`nobody knows ${indicator}`);
        return { scope: `${READ} ${WRITE}`, audience: indicator, accessTokenFormat: 'opaque', accessTokenTTL: 3600 };
      },
    },
    revocation: { enabled: true, allowedPolicy: (_, client, token) => client.clientId === token.clientId },
  },
});
const EVENTS = {
  'registration_create.success': 'registered',
  'refresh_token.consumed': 'rotated',
  'grant.revoked': 'revoked',
};
for (const [event, word] of Object.entries(EVENTS)) provider.on(event, () => console.log(word));
provider.on('grant.success', (ctx) => console.log(ctx.oidc.params.grant_type === 'refresh_token' ? 'refreshed' : 'granted'));
provider.on('grant.error', (ctx, error) => {
  if (/already used/.test(error.error_detail)) console.log('reused');
});
authority.on('request', provider.callback());

/** What the authority says of a token. */
async function verifyAccessToken(token) {
  const { client_id, client_secret } = RESOURCE_SERVER;
  const answer = await fetch(`${issuer}/token/introspection`, {
    method: 'POST',
    headers: { authorization: `Basic ${btoa(`${client_id}:${client_secret}`)}` },
    body: new URLSearchParams({ token }),
  });
  const said = await answer.json();
  if (!said.active) throw new sdk.OAuthError(sdk.OAuthErrorCode.InvalidToken, 'Token is not active');
  const scopes = said.scope?.split(' ') ?? [];
  return { token, clientId: said.client_id, scopes, expiresAt: said.exp, resource: new URL(said.aud), extra: { user: said.sub } };
}

const notes = [];
const text = (value) => ({ content: [{ type: 'text', text: value }] });

function factory() {
  const server = new sdk.McpServer({ name: 'notes', version: '1.0.0' });
  const who = (ctx) => ctx.http.authInfo.extra.user;
  server.registerTool('read', { description: 'Reads all notes', inputSchema: z.object({}) }, (_, ctx) =>
    text(`${who(ctx)} has ${notes.length} notes`));
  const write = { description: 'Writes a note', inputSchema: z.object({ note: z.string() }) };
  server.registerTool('write', { ...write, scopeChallenge: sdk.requireScopes(READ, WRITE) }, ({ note }, ctx) => {
    notes.push(note);
    return text(`${who(ctx)} wrote ${note}`);
  });
  return server;
}

const handler = sdk.createMcpHandler(factory, { legacy: 'stateless' });
const gate = sdk.requireBearerAuth({
  verifier: { verifyAccessToken },
  requiredScopes: [READ],
  resourceMetadataUrl: sdk.getOAuthProtectedResourceMetadataUrl(resourceUrl),
  expectedResource: resourceUrl,
});
const metadata = { oauthMetadata: { issuer }, resourceServerUrl: resourceUrl, scopesSupported: [READ, WRITE] };

async function answer(request) {
  const document = sdk.oauthMetadataResponse(request, metadata);
  if (document) return document;
  const authInfo = await gate(request);
  return authInfo instanceof Response ? authInfo : handler.fetch(request, { authInfo });
}

resource.on('request', async (request, response) => {
  const said = await answer(
    new Request(new URL(request.url, origin), {
      method: request.method,
      headers: request.headers,
      body: request.method === 'POST' ? Readable.toWeb(request) : undefined,
      duplex: 'half',
    }),
  );
  response.writeHead(said.status, Object.fromEntries(said.headers));
  if (said.body) Readable.fromWeb(said.body).on('error', () => response.destroy()).pipe(response);
  else response.end();
});

console.log(resourceUrl.href);
for await (const line of createInterface({ input: process.stdin })) {
  for (const kind of VOID[line]) stored[kind].clear();
  console.log('done');
}
process.exit();
