// A certified authorization server (npm oidc-provider) that issues tokens to programs that act for themselves.
//
// node issuer.mjs PACKAGES FORMAT RESOURCE [PROGRAM...]
//   PACKAGES  the folder whose node_modules holds it
//   FORMAT    jwt or opaque
//   RESOURCE  the address that tokens are issued for
//   PROGRAM   further programs that get tokens
//
// Prints its address as the first line on stdout. The programs are `developer` and `guest`, and `workbench` may ask about
// tokens; the secret of each is its name and `-secret`.

import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const [packages, accessTokenFormat, resource, ...programs] = process.argv.slice(2);
const require = createRequire(join(packages, 'package.json'));
console.info = console.warn = () => {};
const { default: Provider } = await import(pathToFileURL(require.resolve('oidc-provider')));

const server = createServer();
await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
const issuer = `http://127.0.0.1:${server.address().port}`;

const program = (client_id) => ({
  client_id,
  client_secret: `${client_id}-secret`,
  redirect_uris: [],
  response_types: [],
  grant_types: ['client_credentials'],
});
const provider = new Provider(issuer, {
  clients: ['developer', 'guest', 'workbench', ...programs].map(program),
  scopes: ['tools'],
  extraTokenClaims: (_, token) => ({ groups: [`${token.clientId}s`] }),
  features: {
    clientCredentials: { enabled: true },
    introspection: { enabled: true, allowedPolicy: (_, client) => client.clientId === 'workbench' },
    resourceIndicators: {
      enabled: true,
      defaultResource: () => resource,
      getResourceServerInfo: (_, indicator) => {
        if (indicator !== resource) throw new Error(`nobody knows ${indicator}`);
        return { scope: 'tools', audience: indicator, accessTokenFormat, accessTokenTTL: 3600, jwt: { sign: { alg: 'RS256' } } };
      },
    },
  },
});
server.on('request', provider.callback());
console.log(issuer);
