// A login provider for a test: people, groups and one client from its
// environment. It prints its address once it listens.
import http from 'node:http';
import * as lib from 'oidc-provider';

const Provider = lib.default ?? lib.Provider;
const { CLIENT_ID, CLIENT_SECRET, REDIRECT_URI, LOGOUT_URI, PEOPLE } = process.env;
const people = JSON.parse(PEOPLE);

let handle = (_, res) => { res.statusCode = 503; res.end(); };
const server = http.createServer((req, res) => handle(req, res));
server.listen(0, '127.0.0.1', () => {
  const issuer = `http://127.0.0.1:${server.address().port}`;
  const provider = new Provider(issuer, {
    clients: [{
      client_id: CLIENT_ID,
      client_secret: CLIENT_SECRET,
      redirect_uris: [REDIRECT_URI],
      post_logout_redirect_uris: [LOGOUT_URI],
      grant_types: ['authorization_code'],
      response_types: ['code'],
    }],
    pkce: { required: () => true },
    scopes: ['openid', 'profile', 'groups'],
    claims: { openid: ['sub'], profile: ['name'], groups: ['groups'] },
    cookies: { keys: ['a test'] },
    async findAccount(_, id) {
      if (!people[id]) return undefined;
      return { accountId: id, claims: async () => ({ sub: id, ...people[id] }) };
    },
  });
  handle = provider.callback();
  console.log(issuer);
});
