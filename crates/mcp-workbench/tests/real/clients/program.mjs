// A program that gets its own token where the server says, with an official SDK, and opens a toolbox.
//
// node program.mjs PACKAGES SDK ADDRESS NAME TOOLBOX
//   SDK  sdk, client, or modern: the latter without sessions
//
// Prints the text of the answer, or `refused: ` and the reason.

import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const [packages, sdk, address, name, toolbox] = process.argv.slice(2);
const require = createRequire(join(packages, 'package.json'));
const load = (path) => import(pathToFileURL(require.resolve(path)));

async function parts() {
  if (sdk !== 'sdk') {
    const { Client, StreamableHTTPClientTransport, ClientCredentialsProvider } = await load('@modelcontextprotocol/client');
    return { Client, StreamableHTTPClientTransport, ClientCredentialsProvider };
  }
  const { Client } = await load('@modelcontextprotocol/sdk/client/index.js');
  const { StreamableHTTPClientTransport } = await load('@modelcontextprotocol/sdk/client/streamableHttp.js');
  const { ClientCredentialsProvider } = await load('@modelcontextprotocol/sdk/client/auth-extensions.js');
  return { Client, StreamableHTTPClientTransport, ClientCredentialsProvider };
}

const { Client, StreamableHTTPClientTransport, ClientCredentialsProvider } = await parts();
const authProvider = new ClientCredentialsProvider({ clientId: name, clientSecret: `${name}-secret`, scope: 'tools' });
const transport = new StreamableHTTPClientTransport(new URL(address), { authProvider });
const options = sdk === 'modern' ? { versionNegotiation: { mode: { pin: '2026-07-28' } } } : {};
const client = new Client({ name: 'program', version: '1' }, options);
try {
  await client.connect(transport);
  const result = await client.callTool({ name: 'open_toolbox', arguments: { toolbox } });
  console.log(JSON.stringify(result.content[0].text));
  await client.close();
} catch (error) {
  console.log(`refused: ${error.message}`);
}
process.exit(0);
