// Who may talk to the app, where it listens, and how it starts. Requests are raw, since fetch sets its own Host.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createHmac } from "node:crypto";
import { once } from "node:events";
import { readdir, readFile, rm, stat, utimes, writeFile } from "node:fs/promises";
import { createServer, request } from "node:http";
import { connect } from "node:net";
import { networkInterfaces } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { API_KEY, ORG_ID } from "./alchemy.mjs";
import { App } from "./harness.mjs";
import { freePort } from "./processes.mjs";

const ROOT = join(import.meta.dirname, "..");
/** There is none: what gets as far as the chain fails. */
const NO_CHAIN = {
  url: "http://127.0.0.1:9",
  coordinator: { address: `0x${"c".repeat(40)}` },
  market: { address: "" },
  erc4337: { accountOf: () => ({ address: `0x${"a1".repeat(20)}`, initCode: "0x" }) },
};
let app, port;

before(async () => {
  app = await App.start(NO_CHAIN, { ALLOWED_HOSTS: "modal-login, Other:8080" });
  await app.seed();
  port = Number(new URL(app.url).port);
  POST.authorization = (await app.credentials()).authorization;
});
after(() => app?.stop());

function ask(path, { method = "GET", body, port: to = port, ...headers } = {}) {
  return new Promise((resolve, reject) => {
    const sent = request({ host: "127.0.0.1", port: to, path, method, headers }, async (response) => {
      let text = "";
      for await (const chunk of response) text += chunk;
      resolve({ status: response.statusCode, headers: response.headers, text });
    });
    sent.on("error", reject);
    sent.end(body);
  });
}

const BODY = JSON.stringify({ orgId: "nobody", peerId: "QmA" });
/** A node's request, which gets as far as "user not found". */
const POST = { method: "POST", body: BODY, "content-type": "application/json" };

for (const host of ["localhost:3000", "127.0.0.1:3000", "[::1]:3000", "LOCALHOST", "modal-login:3000", "other:3000"]) {
  test(`known by the name ${host}`, async () => {
    assert.equal((await ask("/api/register-peer", { ...POST, host })).status, 404);
  });
}

/** What the app gives a browser that opens an address. */
async function cookieOf(address, { url } = app) {
  const { pathname, search, host } = new URL(address);
  const reply = await ask(pathname + search, { host, port: new URL(url).port });
  assert.equal(reply.status, 303, reply.text);
  assert.match(reply.headers.location, new RegExp(`^(${url})?/$`));
  const [cookie] = reply.headers["set-cookie"];
  assert.match(cookie, /; HttpOnly; SameSite=lax$/i);
  return cookie.split(";")[0];
}

const host = () => `localhost:${port}`;
const STATUS = `/api/get-api-key-status?orgId=${ORG_ID}`;

test("another user of this machine, without token and cookie, is told nothing and can do nothing", async () => {
  const { authorization, ...post } = POST;
  for (const sent of [{}, { authorization: "Bearer " }, { authorization: `${authorization}x` }, { authorization: "x" }]) {
    assert.equal((await ask(STATUS, { host: host(), ...sent })).status, 403);
    assert.equal((await ask("/api/machine", { host: host(), ...sent })).status, 403);
    assert.equal((await ask("/api/ticket", { ...post, host: host(), ...sent })).status, 403);
    assert.equal((await ask("/api/register-peer", { ...post, host: host(), ...sent })).status, 403);
    const page = await ask("/", { host: host(), ...sent });
    assert.equal(page.status, 403);
    assert.match(page.text, /node start\.mjs address/);
  }
  assert.equal((await ask("/api/health", { host: host() })).status, 200);
});

test("it proves that it has the token, of its port and for one question, and does not tell it", async () => {
  const token = (await readFile(join(app.data, "token"), "utf8")).trim();
  const proof = async (nonce) => JSON.parse((await ask(`/api/health?nonce=${nonce}`, { host: host() })).text).proof;
  assert.equal(await proof("a"), createHmac("sha256", token).update(`health ${port} a`).digest("base64url"));
  assert.notEqual(await proof("a"), await proof("b"));
});

test("a node's token and a browser's cookie are known; either is kept for the user alone", async () => {
  assert.equal((await ask(STATUS, { host: host(), authorization: POST.authorization })).text, "activated");
  const cookie = await cookieOf(await app.address());
  assert.equal((await ask("/api/machine", { host: host(), cookie })).status, 200);
  const value = cookie.split("=")[1];
  assert.equal((await ask(STATUS, { host: host(), authorization: `Bearer ${value}` })).status, 403);
  assert.equal((await stat(join(app.data, "token"))).mode & 0o777, 0o600);
  assert.equal((await stat(join(app.data, "tickets"))).mode & 0o777, 0o700);
  assert.ok(!POST.authorization.includes(value));
});

test("two apps of one host have cookies of their own, though a browser sends both to each", async () => {
  const other = await App.start(NO_CHAIN);
  try {
    const [one, two] = [await cookieOf(await app.address()), await cookieOf(await other.address(), other)];
    for (const [each, own, others] of [[app, one, two], [other, two, one]]) {
      const machine = async (cookie) => (await each.get("/api/machine", { authorization: "", cookie })).status;
      assert.equal(await machine(`${one}; ${two}`), 200);
      assert.equal(await machine(`${two}; ${one}`), 200);
      assert.equal(await machine(others), 403);
      assert.equal(await machine(`${own.split("=")[0]}=${others.split("=")[1]}`), 403);
    }
  } finally {
    await other.stop();
  }
});

test("a cookie, which a browser shows to servers on other ports, writes nothing to the chain and lets nobody in", async () => {
  const cookie = await cookieOf(await app.address());
  const { authorization, ...post } = POST;
  const writes = ["register-peer", "submit-reward", "submit-winner", "guess-answer", "claim-reward"];
  for (const name of [...writes, "bet-token-balance", "ticket", "get-api-key/", "alchemy/"]) {
    const reply = await ask(`/api/${name}`, { ...post, host: host(), cookie });
    assert.ok([308, 403].includes(reply.status), `${name}: ${reply.status}`);
  }
  assert.equal((await ask(STATUS, { host: host(), cookie })).status, 403);
  for (const name of ["get-api-key", "set-api-key-activated", "rpc", "alchemy/signer/v1/signer-config"]) {
    assert.notEqual((await ask(`/api/${name}`, { ...post, host: host(), cookie })).status, 403, name);
  }
});

test("its folder deleted while it runs: old token and cookie are no good, and nodes learn that nobody has signed in", async () => {
  const cookie = await cookieOf(await app.address());
  await rm(app.data, { recursive: true });
  const asked = { ...POST, host: host(), body: JSON.stringify({ orgId: ORG_ID, peerId: "QmA" }) };
  assert.equal((await ask("/api/register-peer", asked)).status, 403);
  assert.equal((await ask("/api/machine", { host: host(), cookie })).status, 403);
  const { authorization } = await app.credentials();
  assert.notEqual(authorization, POST.authorization);
  const reply = await ask("/api/register-peer", { ...asked, authorization });
  assert.deepEqual([reply.status, JSON.parse(reply.text)], [404, { error: "user not found" }]);
  await cookieOf(await app.address()); // for who signs in again
  POST.authorization = authorization;
  await app.seed();
});

test("an address works once and for an hour", async () => {
  const { pathname, search } = new URL(await app.address());
  const asked = await Promise.all([1, 2, 3].map(() => ask(pathname + search, { host: host() })));
  assert.deepEqual(asked.map(({ status }) => status).sort(), [303, 403, 403]);
  const old = new URL(await app.address());
  const [name] = await readdir(join(app.data, "tickets"));
  await utimes(join(app.data, "tickets", name), 0, Date.now() / 1000 - 3601);
  assert.equal((await ask(old.pathname + old.search, { host: host() })).status, 403);
  for (const ticket of ["", "x", "..%2Ftoken", "%00", "..%2F..%2Fswarm.pem"]) {
    assert.equal((await ask(`/?ticket=${ticket}`, { host: host() })).status, 403, ticket);
  }
});

test("a page asked for by a number moves to the name with its ticket, and lets nobody in on the way", async () => {
  const { search } = new URL(await app.address());
  for (const name of ["127.0.0.1", "[::1]"]) {
    const reply = await ask(`/${search}`, { host: `${name}:${port}` });
    assert.ok(reply.text.endsWith(`content="0;url=${app.url}/${search}">`), reply.text);
    assert.equal(reply.headers["set-cookie"], undefined);
    const hostile = await ask(`/?ticket=${encodeURIComponent('"><script>')}`, { host: `${name}:${port}` });
    assert.ok(hostile.text.endsWith(`content="0;url=${app.url}/">`), hostile.text);
  }
});

test("neither token nor ticket is printed where it may become a log, and `address` gives one", async () => {
  const token = POST.authorization.replace("Bearer ", "");
  const child = spawn(process.execPath, ["start.mjs", "address"], { cwd: ROOT, env: app.environment });
  let said = "";
  child.stdout.on("data", (text) => (said += text));
  await once(child, "exit");
  assert.match(said, new RegExp(`^${app.url}/\\?ticket=[\\w-]{43}\\n$`));
  await cookieOf(said.trim());
  assert.ok(!app.output.includes("?ticket="));
  assert.ok(!app.output.includes(token));
});

test("with ALLOW_WITHOUT_TOKEN programs need no token, and pages still do", async () => {
  const open = await App.start(NO_CHAIN, { ALLOW_WITHOUT_TOKEN: "1" });
  try {
    await open.seed();
    const none = { authorization: "" };
    assert.equal(await (await open.get(STATUS, none)).text(), "activated");
    assert.equal((await open.get(STATUS, { ...none, origin: open.url })).status, 403);
    assert.equal((await open.get("/", none)).status, 403);
  } finally {
    await open.stop();
  }
});

const FOREIGN = [
  ["a name pointed at this machine", { host: "evil.example:3000" }],
  ["a name that begins like ours", { host: "localhost.evil.example" }],
  ["a name that ends like ours", { host: "evil-localhost" }],
  ["an address that is none of ours", { host: "192.168.1.5:3000" }],
  ["another site's page", { host: "localhost:3000", origin: "https://evil.example" }],
  ["another port's page", { host: "localhost:3000", origin: "http://localhost:8080" }],
  ["a page in a sandbox, or a file", { host: "localhost:3000", origin: "null" }],
  ["another site's page, without origin", { host: "localhost:3000", "sec-fetch-site": "cross-site" }],
  ["another port's page, without origin", { host: "localhost:3000", "sec-fetch-site": "same-site" }],
];
for (const [who, headers] of FOREIGN) {
  test(`refused: ${who}`, async () => {
    const reply = await ask("/api/register-peer", { ...POST, ...headers });
    assert.equal(reply.status, 403, reply.text);
    assert.equal(reply.headers["access-control-allow-origin"], undefined);
    const read = await ask(`/api/get-api-key-status?orgId=${ORG_ID}`, { ...(await app.credentials()), ...headers });
    assert.equal(read.status, 403);
    assert.ok(!read.text.includes("activated"));
  });
}

test("a link from elsewhere opens the page, which nobody may frame", async () => {
  const link = { host: `localhost:${port}`, "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate" };
  const cookie = await cookieOf(await app.address());
  const reply = await ask("/", { ...link, cookie });
  assert.equal(reply.status, 200);
  assert.match(reply.headers["content-security-policy"], /frame-ancestors 'none'/);
  assert.ok(!reply.text.includes(API_KEY));
  assert.equal(reply.headers["x-powered-by"], undefined);
});

test("the page's RPC server takes reads only, and the signer's routes no others", async () => {
  const rpc = (method) => app.post("/api/rpc", { jsonrpc: "2.0", id: 1, method, params: [] });
  assert.equal((await rpc("eth_sendUserOperation")).status, 400);
  assert.equal((await rpc("eth_sendRawTransaction")).status, 400);
  assert.equal((await app.post("/api/alchemy/signer/v1/signer-config", {})).status, 200);
  assert.equal((await app.post("/api/alchemy/signer/v1/..%2F..%2Fv2", {})).status, 404);
  assert.equal((await app.post("/api/alchemy/signer/v2/whoami", {})).status, 404);
});

test("it listens on this machine alone", async (t) => {
  const outside = Object.values(networkInterfaces()).flat().filter((one) => !one.internal && one.family === "IPv4");
  if (outside.length === 0) t.skip("this machine has no address but its own");
  for (const { address } of outside) {
    const socket = connect(port, address);
    await assert.rejects(once(socket, "connect"), { code: "ECONNREFUSED" });
  }
});

test("key files of nodes may be named with spaces after the commas", async () => {
  const own = await App.start(NO_CHAIN);
  try {
    const peer = await own.makeIdentity();
    assert.match(peer, /^Qm/);
    await own.again({ NODE_KEYS: `${join(own.folder, "none.pem")}, ${own.environment.NODE_KEYS}` });
    assert.deepEqual((await (await own.get("/api/machine")).json()).peers, [peer]);
  } finally {
    await own.stop();
  }
});

async function startWith(environment, ...words) {
  const env = { PATH: process.env.PATH, PORT: String(await freePort()), SIGN_IN_ENV_FILE: "/dev/null", ...environment };
  const child = spawn(process.execPath, ["start.mjs", ...words], { cwd: ROOT, env, stdio: ["ignore", "ignore", "pipe"] });
  let said = "";
  child.stderr.on("data", (text) => (said += text));
  const [code] = await once(child, "exit");
  return { code, said };
}

test("a wrong setting ends the start with one line that names it", async () => {
  const { code, said } = await startWith({ SMART_CONTRACT_ADDRESS: "0x12" });
  assert.equal(code, 1);
  assert.equal(said, "error: SMART_CONTRACT_ADDRESS: no address; see modal-login/README.md\n");
  assert.match((await startWith({ BUNDLER_URL: "file:///etc/passwd" })).said, /^error: BUNDLER_URL: /);
});

test("an address or a key with which no request can be made ends the start, and is not shown", async () => {
  const users = { ALCHEMY_BASE_URL: "anna:secret@", BUNDLER_URL: "secret@", RPC_URL: ":secret@" };
  for (const [name, user] of Object.entries(users)) {
    const { code, said } = await startWith({ [name]: `https://${user}rpc.example/v2` });
    assert.equal(code, 1);
    assert.equal(said, `error: ${name}: an address with a user name or password cannot be asked; see modal-login/README.md\n`);
  }
  for (const key of ["sec\nret", "sec…ret"]) {
    const { code, said } = await startWith({ ALCHEMY_API_KEY: key });
    assert.equal(code, 1);
    assert.match(said, /^error: ALCHEMY_API_KEY: a key has no spaces, [^\n]*README\.md\n$/);
  }
});

test("`address` says what to do where no app has run, or does not answer", async () => {
  const empty = await startWith({ DATA_DIR: join(app.folder, "nothing") }, "address");
  assert.match(empty.said, /^error: there is no .*nothing.token: start the app first, or set DATA_DIR/);
  const elsewhere = await startWith({ DATA_DIR: app.data, CODEZERO_SIGN_IN_HOST: "127.0.0.2" }, "address");
  assert.match(elsewhere.said, /^error: no app of this folder answers at http:\/\/127\.0\.0\.2:/);
});

test("the command that prints an address does not send the token to who listens in the app's place", async () => {
  const asked = [];
  const listener = createServer((request, response) => {
    asked.push(request.headers.authorization);
    response.end(JSON.stringify({ alchemy: "reachable", proof: "x", ticket: "x" }));
  }).listen(0, "127.0.0.1");
  await once(listener, "listening");
  const { code, said } = await startWith({ DATA_DIR: app.data, PORT: String(listener.address().port) }, "address");
  listener.close();
  assert.equal(code, 1);
  assert.match(said, /^error: no app of this folder answers at /);
  assert.deepEqual(asked, [undefined]);
});

test("what is no port ends the start", async () => {
  for (const given of ["abc", "0", "65536", "3000x", "-1", "1e3"]) {
    const { code, said } = await startWith({ PORT: given, DATA_DIR: app.data }, "address");
    assert.deepEqual([code, said], [1, `error: PORT: ${given} is no port from 1 to 65535\n`]);
  }
});

test("settings may come from a file", async () => {
  const file = join(app.folder, "sign-in.env");
  await writeFile(file, "CHAIN_ID=none\n");
  assert.match((await startWith({ SIGN_IN_ENV_FILE: file })).said, /^error: CHAIN_ID: /);
  assert.match((await startWith({ SIGN_IN_ENV_FILE: join(app.folder, "nothing.env") })).said, /does not exist/);
});

test("the errors and functions known here are those of the contracts", async () => {
  const source = await readFile(join(ROOT, "lib", "contracts.ts"), "utf8");
  const entries = [];
  for (const name of ["SwarmCoordinator", "PredictionMarket"]) {
    const { abi } = JSON.parse(await readFile(join(ROOT, "..", "codezero", "ledger", "artifacts", `${name}.json`), "utf8"));
    entries.push(...abi.map((entry) => `${entry.type} ${entry.name}`));
  }
  const known = [...source.matchAll(/"((?:error|function) \w+)\(/g)].map(([, entry]) => entry);
  assert.ok(known.includes("error WinnerAlreadyVoted") && known.includes("function guessAnswer"));
  for (const entry of known) assert.ok(entries.includes(entry), entry);
});
