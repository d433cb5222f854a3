// The HTTP API as nodes use it: what arrives on the chain, and what is refused.
import assert from "node:assert/strict";
import { stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, beforeEach, test } from "node:test";
import { parseEventLogs } from "viem";
import { entryPoint07Abi } from "viem/account-abstraction";
import { ORG_ID } from "./alchemy.mjs";
import { Bundler } from "./bundler.mjs";
import { App, Chain, digest, inDays } from "./harness.mjs";
import { eventually } from "./processes.mjs";

let chain, app, key;
let count = 0;

before(async () => {
  chain = await Chain.start();
  app = await App.start(chain);
});
after(async () => {
  await app?.stop();
  await chain?.stop();
});
beforeEach(async () => {
  app.alchemy.mode = app.bundler.mode = "ok";
  app.bundler.beforeSending = async () => undefined;
  key = await app.seed();
});

const newPeer = () => `QmPeer${(count += 1)}`;
const register = (peerId) => app.post("/api/register-peer", { orgId: ORG_ID, peerId });

test("a peer is registered to the smart account, which its first operation makes, and the sponsor pays", async () => {
  const peer = newPeer();
  const reply = await register(peer);
  assert.equal(reply.status, 200, reply.text);
  assert.deepEqual(await chain.read(chain.coordinator, "getEoa", [[peer]]), [key.account]);
  const { logs } = await chain.client.getTransactionReceipt({ hash: reply.hash });
  const named = (eventName) => parseEventLogs({ abi: entryPoint07Abi, eventName, logs });
  const [[deployed], [handled]] = [named("AccountDeployed"), named("UserOperationEvent")];
  assert.equal(deployed.args.sender, key.account);
  const { userOpHash, sender, paymaster, success } = handled.args;
  assert.deepEqual([userOpHash, sender, success], [reply.userOpHash, key.account, true]);
  assert.equal(paymaster.toLowerCase(), chain.erc4337.paymaster.address.toLowerCase());
  assert.equal(await chain.client.getBalance({ address: key.account }), 0n);
});

test("rewards and votes arrive with their values, also what is negative or beyond a double", async () => {
  const [peer, other] = [newPeer(), newPeer()];
  await register(peer);
  await register(other);
  const round = Number(await chain.read(chain.coordinator, "currentRound"));
  const reward = { orgId: ORG_ID, roundNumber: round, stageNumber: 0, peerId: peer };
  assert.equal((await app.post("/api/submit-reward", { ...reward, reward: -7 })).status, 200);
  const large = { ...reward, peerId: other, reward: "14285714285714285714" };
  assert.equal((await app.post("/api/submit-reward", large)).status, 200);
  assert.deepEqual(await chain.read(chain.coordinator, "getTotalRewards", [[peer, other]]), [-7n, 14285714285714285714n]);
  const vote = { orgId: ORG_ID, roundNumber: round, winners: [other, peer], peerId: peer };
  assert.equal((await app.post("/api/submit-winner", vote)).status, 200);
  assert.deepEqual(await chain.read(chain.coordinator, "getVoterVotes", [BigInt(round), peer]), [other, peer]);
});

test("a refusal by the compiler's own checks, such as an overflow, comes back as Solidity names it", async () => {
  const [peer, other] = [newPeer(), newPeer()];
  await register(peer);
  await register(other);
  const reward = { orgId: ORG_ID, roundNumber: 0, stageNumber: 0, reward: String(2n ** 255n - 1n) };
  assert.equal((await app.post("/api/submit-reward", { ...reward, peerId: peer })).status, 200);
  const reply = await app.post("/api/submit-reward", { ...reward, peerId: other });
  assert.deepEqual([reply.status, reply.error], [500, "the contract refuses submitReward: Panic(0x11)"]);
});

for (const mode of ["ok", "errors as HTTP 400"]) {
  test(`a contract's refusal comes back as 400 with its name (bundler: ${mode})`, async () => {
    const peer = newPeer();
    await register(peer);
    app.bundler.mode = mode;
    const again = await register(peer);
    assert.deepEqual([again.status, again.error], [400, "PeerIdAlreadyRegistered"], again.text);
    const vote = { orgId: ORG_ID, roundNumber: 99999, winners: [peer], peerId: peer };
    const early = await app.post("/api/submit-winner", vote);
    assert.deepEqual([early.status, early.error], [400, "InvalidRoundNumber"], early.text);
  });
}

test("the deferred action goes along until the chain has taken it", async () => {
  for (const _ of [1, 2, 3]) assert.equal((await register(newPeer())).status, 200); // the bundler checks it
});

test("operations of one account are sent one after the other", async () => {
  const peers = [1, 2, 3, 4, 5].map(newPeer);
  const replies = await Promise.all(peers.map(register));
  assert.deepEqual(replies.map((reply) => reply.status), [200, 200, 200, 200, 200], replies.map((r) => r.text).join());
  const owners = await chain.read(chain.coordinator, "getEoa", [peers]);
  assert.deepEqual([...new Set(owners)], [key.account]);
  assert.equal(new Set(replies.map((reply) => reply.hash)).size, 5);
});

test("the market takes bets in whole tokens, and tells balances as decimal strings", async () => {
  const peer = newPeer();
  await register(peer);
  await chain.write(chain.market, "createNewGame", [3n, 2n, `0x${"00".repeat(32)}`]);
  const gameId = Number((await chain.read(chain.market, "gameCount")) - 1n);
  const ask = () => app.post("/api/bet-token-balance", { orgId: ORG_ID, peerId: peer });
  assert.equal((await ask()).result, "1000000000000000000");
  const guess = { orgId: ORG_ID, gameId, peerId: peer, clueId: 0, choiceIdx: 1, bet: "142857142857142857" };
  const reply = await app.post("/api/guess-answer", guess);
  assert.equal(reply.status, 200, reply.text);
  assert.equal((await ask()).result, "857142857142857143");
  const again = await app.post("/api/guess-answer", guess);
  assert.equal(again.status, 500);
  assert.equal(again.error, "the contract refuses guessAnswer: already guessed");
  const early = await app.post("/api/claim-reward", { orgId: ORG_ID, gameId, peerId: peer });
  assert.equal(early.error, "the contract refuses claimReward: no answer yet");
});

const BAD = [
  ["register-peer", { peerId: "QmA" }, "orgId"],
  ["register-peer", { orgId: ORG_ID }, "peerId"],
  ["register-peer", { orgId: ORG_ID, peerId: "a b" }, "peerId"],
  ["register-peer", { orgId: ORG_ID, peerId: "a".repeat(129) }, "peerId"],
  ["register-peer", { orgId: ORG_ID, peerId: ["QmA"] }, "peerId"],
  ["register-peer", [], ""],
  ["register-peer", "{", "no JSON"],
  ["register-peer", "", "no JSON"],
  ["submit-reward", { orgId: ORG_ID, roundNumber: -1, stageNumber: 0, reward: 1, peerId: "QmA" }, "roundNumber"],
  ["submit-reward", { orgId: ORG_ID, roundNumber: 1.5, stageNumber: 0, reward: 1, peerId: "QmA" }, "roundNumber"],
  ["submit-reward", { orgId: ORG_ID, roundNumber: 1, stageNumber: 0, reward: 2 ** 53, peerId: "QmA" }, "reward"],
  ["submit-reward", { orgId: ORG_ID, roundNumber: 1, stageNumber: 0, reward: "1e3", peerId: "QmA" }, "reward"],
  ["submit-reward", { orgId: ORG_ID, roundNumber: 1, stageNumber: 0, reward: null, peerId: "QmA" }, "reward"],
  ["submit-winner", { orgId: ORG_ID, roundNumber: 0, winners: "QmA", peerId: "QmA" }, "winners"],
  ["submit-winner", { orgId: ORG_ID, roundNumber: 0, winners: Array(257).fill("QmA"), peerId: "QmA" }, "winners"],
  ["guess-answer", { orgId: ORG_ID, gameId: 0, peerId: "QmA", clueId: 0, choiceIdx: 0, bet: "-1" }, "bet"],
  ["get-api-key", { whoamiStamp: "stamp" }, "whoamiStamp"],
  ["set-api-key-activated", { orgId: ORG_ID, apiKey: "0x12" }, "apiKey"],
];
for (const [name, body, word] of BAD) {
  test(`bad input is 400 with a reason: ${name} ${JSON.stringify(body).slice(0, 70)}`, async () => {
    const reply = await app.post(`/api/${name}`, body);
    assert.equal(reply.status, 400);
    assert.match(reply.error, /^bad request: /);
    assert.ok(reply.error.includes(word), reply.error);
  });
}

test("what is refused comes back, and is logged, in one short line", async () => {
  const start = app.output.length;
  const method = `eth_x\n/api/submit-reward: forged\u001b[31m${"x".repeat(100_000)}`;
  const reply = await app.post("/api/rpc", { jsonrpc: "2.0", id: 1, method });
  assert.equal(reply.status, 400);
  assert.ok(reply.error.length < 300 && !/[\n\u001b]/.test(reply.error), reply.error.slice(0, 400));
  await eventually(async () => assert.equal(app.output.slice(start), `/api/rpc: 400 ${reply.error}\n`));
});

test("a body that is too long, or no JSON by its type, is refused", async () => {
  assert.equal((await app.post("/api/register-peer", " ".repeat(300_000))).status, 413);
  const form = await app.post("/api/register-peer", { orgId: ORG_ID, peerId: "QmA" }, { "content-type": "text/plain" });
  assert.equal(form.status, 415);
});

test("whom the app does not know gets 404", async () => {
  const reply = await app.post("/api/register-peer", { orgId: "nobody", peerId: "QmA" });
  assert.deepEqual([reply.status, reply.error], [404, "user not found"]);
  assert.equal((await app.get("/api/get-api-key-status?orgId=nobody")).status, 404);
  assert.equal((await app.get("/api/get-api-key-status")).status, 400);
});

test("the status of a key is plain text; an expired one is not activated and cannot write", async () => {
  const status = async () => (await app.get(`/api/get-api-key-status?orgId=${ORG_ID}`)).text();
  assert.equal(await status(), "activated");
  await app.seed({ activated: false });
  assert.equal(await status(), "not activated");
  assert.equal((await register("QmA")).status, 500);
  await app.seed({ deadline: inDays(-1) });
  assert.equal(await status(), "not activated");
  const reply = await register("QmA");
  assert.deepEqual([reply.status, reply.error], [401, "the session key has expired: sign in again"]);
});

test("an RPC server of its own gets the API key where it is at the bundler's host, also when an operation is written", async () => {
  const split = await App.start(chain);
  const other = await new Bundler(chain.url, chain.erc4337).listen();
  try {
    split.bundler.mode = "wants the key";
    other.mode = "wants no key";
    for (const url of [`${split.bundler.url}/rpc`, other.url]) {
      await split.again({ RPC_URL: url });
      await split.seed();
      const reply = await split.post("/api/register-peer", { orgId: ORG_ID, peerId: newPeer() });
      assert.equal(reply.status, 200, reply.text);
      const balance = await split.post("/api/bet-token-balance", { orgId: ORG_ID, peerId: newPeer() });
      assert.equal(balance.status, 200, balance.text);
      const read = await split.post("/api/rpc", { jsonrpc: "2.0", id: 1, method: "eth_chainId" });
      assert.ok(read.result, read.text);
    }
  } finally {
    await split.stop();
    other.close();
  }
});

test("the page is told that the RPC server answers with something else than JSON-RPC", async () => {
  app.bundler.mode = "wants no key";
  const reply = await app.post("/api/rpc", { jsonrpc: "2.0", id: 1, method: "eth_chainId" });
  assert.deepEqual([reply.status, reply.error], [502, "the RPC server answers with HTTP 401"]);
});

test("what goes wrong at the bundler is one line, without its address", async () => {
  app.bundler.mode = "HTTP 503";
  const busy = await register("QmA");
  assert.equal(busy.status, 502);
  assert.ok(!busy.text.includes("secret-key"), busy.text);
});

test("what account-kit logs of it is one line too, without addresses and what was sent", async () => {
  app.bundler.beforeSending = async () => {
    app.bundler.mode = "HTTP 503"; // also for what account-kit then asks the chain, to log why
  };
  const start = app.output.length;
  assert.equal((await register(newPeer())).status, 502);
  const logged = () => app.output.slice(start);
  await eventually(async () => assert.match(logged(), /Entrypoint reverted[^\n]*\n[^\n]+\n/));
  assert.match(logged(), /^ContractFunctionExecutionError: [^\n]+$/m);
  for (const word of [app.bundler.url, "example.org", "URL:", "Request body:", "signature"]) {
    assert.ok(!logged().includes(word), `${word} in ${logged()}`);
  }
});

test("a sign-in makes a key pair that only its file knows, and activates it", async () => {
  const stamp = { url: "https://x.example/whoami", body: "{}", stamp: { stampHeaderName: "X-Stamp", stampHeaderValue: "s" } };
  const reply = await app.post("/api/get-api-key", { whoamiStamp: stamp });
  assert.equal(reply.status, 200, reply.text);
  const [, added] = (await app.stored("userApiKey.json"))[ORG_ID];
  assert.deepEqual(Object.keys(reply).sort(), ["publicKey", "status", "text"]);
  assert.equal(reply.publicKey, added.publicKey);
  assert.equal(added.activated, false);
  assert.ok(!app.output.includes(added.privateKey.slice(2)));
  const { orgId, userId, email } = (await app.stored("userData.json"))[ORG_ID];
  assert.deepEqual([orgId, userId, email], [ORG_ID, "user-1", "anna@example.org"]);
  for (const name of ["userData.json", "userApiKey.json"]) {
    assert.equal((await stat(join(app.data, name))).mode & 0o777, 0o600);
  }
  const { address: accountAddress, initCode } = await chain.erc4337.accountOf(reply.publicKey);
  const done = { accountAddress, initCode, deferredActionDigest: digest(reply.publicKey, inDays(1)) };
  const activated = await app.post("/api/set-api-key-activated", { orgId: ORG_ID, apiKey: reply.publicKey, ...done });
  assert.equal(activated.status, 200, activated.text);
  const stored = (await app.stored("userApiKey.json"))[ORG_ID].at(-1);
  assert.deepEqual({ ...stored, ...done }, stored);
  assert.equal(stored.activated, true);
  const peer = newPeer();
  await register(peer);
  assert.deepEqual(await chain.read(chain.coordinator, "getEoa", [[peer]]), [accountAddress]);
});

test("a key is not activated for another one's permission, nor one that is not there", async () => {
  const { publicKey } = key;
  const other = `0x${"12".repeat(20)}`;
  const done = { orgId: ORG_ID, accountAddress: key.account, initCode: "0x" };
  const foreign = { ...done, apiKey: publicKey, deferredActionDigest: digest(other, inDays(1)) };
  assert.equal((await app.post("/api/set-api-key-activated", foreign)).status, 400);
  const unknown = { ...done, apiKey: other, deferredActionDigest: digest(other, inDays(1)) };
  assert.equal((await app.post("/api/set-api-key-activated", unknown)).status, 404);
});

test("whom Alchemy does not know gets no key", async () => {
  const stamp = { url: "https://x.example", body: "{}", stamp: { stampHeaderName: "X", stampHeaderValue: "forged" } };
  const reply = await app.post("/api/get-api-key", { whoamiStamp: stamp });
  assert.equal(reply.status, 401);
  assert.equal((await app.stored("userApiKey.json"))[ORG_ID].length, 1);
});

test("who asks while Alchemy takes no more requests is told to try later, not to sign in again", async () => {
  app.alchemy.mode = 429;
  const stamp = { url: "https://x.example", body: "{}", stamp: { stampHeaderName: "X", stampHeaderValue: "s" } };
  const reply = await app.post("/api/get-api-key", { whoamiStamp: stamp });
  assert.deepEqual([reply.status, reply.error], [502, "Alchemy answers whoami with HTTP 429: try again later"]);
});

test("a damaged file is told and left as it is", async () => {
  await writeFile(join(app.data, "userApiKey.json"), "{half");
  const reply = await register("QmA");
  assert.equal(reply.status, 500);
  assert.match(reply.error, /^userApiKey.json is damaged/);
  await assert.rejects(app.stored("userApiKey.json"), SyntaxError);
});

test("files of an earlier app, with keys of another kind, do not keep anybody from signing in", async () => {
  const key = { publicKey: "02ab", privateKey: "ab".repeat(32), createdAt: "2025-06-01T00:00:00.000Z", activated: true };
  await writeFile(join(app.data, "userApiKey.json"), JSON.stringify({ [ORG_ID]: [key] }));
  assert.equal(await (await app.get(`/api/get-api-key-status?orgId=${ORG_ID}`)).text(), "not activated");
  const stamp = { url: "https://x.example", body: "{}", stamp: { stampHeaderName: "X", stampHeaderValue: "s" } };
  assert.equal((await app.post("/api/get-api-key", { whoamiStamp: stamp })).status, 200);
  assert.deepEqual((await app.stored("userApiKey.json"))[ORG_ID][0], key);
});

test("health tells what is wrong with Alchemy, in time", async () => {
  const health = async () => (await (await app.get("/api/health")).json()).alchemy;
  assert.equal(await health(), "reachable");
  app.alchemy.mode = 503;
  assert.equal(await health(), "unreachable: it answers with HTTP 503");
  app.alchemy.mode = 401;
  assert.equal(await health(), "unreachable: it refuses ALCHEMY_API_KEY (HTTP 401)");
  app.alchemy.mode = "hangs";
  const started = Date.now();
  assert.equal(await health(), "unreachable: it gives no answer in time");
  assert.ok(Date.now() - started < 10_000);
});

test("many who ask for its health at once have it ask Alchemy once", async () => {
  app.alchemy.mode = "hangs";
  app.alchemy.asked.length = 0;
  const replies = await Promise.all(Array.from({ length: 40 }, () => fetch(`${app.url}/api/health`).then((reply) => reply.json())));
  assert.deepEqual([...new Set(replies.map(({ alchemy }) => alchemy))], ["unreachable: it gives no answer in time"]);
  assert.ok(app.alchemy.asked.length < 5, `${app.alchemy.asked.length} requests`);
});

test("who has signed in on this machine is told also while the chain hangs", async () => {
  app.bundler.mode = "hangs";
  const { accounts } = await (await app.get("/api/machine", {})).json();
  assert.deepEqual(accounts.map(({ orgId, expired, peers }) => [orgId, expired, peers]), [[ORG_ID, false, null]]);
});
