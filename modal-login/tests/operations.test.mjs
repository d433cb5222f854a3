// User operations of the app between a real bundler, EntryPoint and paymaster: what they refuse, and what counts once.
import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { encodeFunctionData, parseAbi, parseEventLogs, toHex, zeroAddress } from "viem";
import { entryPoint07Abi, entryPoint07Address } from "viem/account-abstraction";
import { generatePrivateKey, privateKeyToAddress } from "viem/accounts";
import { ORG_ID } from "./alchemy.mjs";
import { App, Chain } from "./harness.mjs";
import { eventually } from "./processes.mjs";

const executeAbi = parseAbi(["function execute(address target, uint256 value, bytes data)"]);
const nothing = async () => undefined;
let chain, stack, app, key;
let count = 0;

before(async () => {
  chain = await Chain.start();
  stack = chain.erc4337;
  app = await App.start(chain);
});
after(async () => {
  await app?.stop();
  await chain?.stop();
});
beforeEach(async () => {
  app.bundler.beforeSending = app.bundler.afterSending = app.bundler.beforeReceipt = nothing;
  app.bundler.sent.length = 0;
  key = await app.seed();
});

const newPeer = () => `QmOperation${(count += 1)}`;
const register = (peerId, at = app) => at.post("/api/register-peer", { orgId: ORG_ID, peerId });
const ownerOf = async (peer) => (await chain.read(chain.coordinator, "getEoa", [[peer]]))[0];
const rewards = (...peers) => chain.read(chain.coordinator, "getTotalRewards", [peers]);

function submit(peerId, reward, at = app) {
  return at.post("/api/submit-reward", { orgId: ORG_ID, roundNumber: 0, stageNumber: 0, reward, peerId });
}

/** Sends to the bundler, past the app. */
function send(operation) {
  return stack.alto.ask("eth_sendUserOperation", [operation, entryPoint07Address]);
}

/** The account's next operation: a call to the coordinator. */
function next(functionName, args) {
  const { factory, factoryData, ...operation } = app.bundler.sent.at(-1);
  const data = encodeFunctionData({ abi: chain.coordinator.abi, functionName, args });
  const callData = encodeFunctionData({ abi: executeAbi, args: [chain.coordinator.address, 0n, data] });
  return { ...operation, nonce: toHex(BigInt(operation.nonce) + 1n), callData };
}

test("AA24: what another key has signed is refused, and the app says to sign in again", async () => {
  await register(newPeer());
  const peer = newPeer();
  const operation = next("registerPeer", [peer]);
  const forged = await stack.signed(operation, generatePrivateKey());
  await assert.rejects(send(forged), { code: -32507 });
  await assert.rejects(stack.handle(forged), /AA24 signature error/);
  assert.equal(await ownerOf(peer), zeroAddress);
  await stack.handle(await stack.signed(operation, key.privateKey));
  assert.equal(await ownerOf(peer), key.account);

  await app.seed({ owner: privateKeyToAddress(generatePrivateKey()) });
  const reply = await register(newPeer());
  assert.equal(reply.status, 502);
  assert.match(reply.error, /^the bundler refuses the session key \(.*AA24.*\): sign in again$/);
});

test("AA25: a nonce serves once, also for another call that the account has signed and the sponsor pays for", async () => {
  await register(newPeer());
  const peer = newPeer();
  const [{ nonce }] = app.bundler.sent;
  const reused = await stack.signed({ ...next("registerPeer", [peer]), nonce }, key.privateKey);
  await assert.rejects(send(reused), /AA25 invalid account nonce/);
  await assert.rejects(stack.handle(reused), /AA25 invalid account nonce/);
  assert.equal(await ownerOf(peer), zeroAddress);
});

test("the same operation twice counts once: while it waits, once mined, and within one bundle", async () => {
  const [peer, other] = [newPeer(), newPeer()];
  await register(peer);
  await register(other);
  let again;
  app.bundler.afterSending = async () => (again = await send(app.bundler.sent.at(-1)).catch((error) => error));
  assert.equal((await submit(peer, 5)).status, 200);
  assert.match(again.message, /Already known|AA25/);
  const mined = app.bundler.sent.at(-1);
  await assert.rejects(send(mined), /AA25/);
  await assert.rejects(stack.handle(mined), /AA25/);
  const unsent = await stack.signed(next("submitReward", [0n, 0n, 7n, other]), key.privateKey);
  await assert.rejects(stack.handle(unsent, unsent), /AA25/);
  assert.deepEqual(await rewards(peer, other), [5n, 0n]);
});

test("AA31: of a sponsor without money the app says so; once it has some, the reward counts", async () => {
  const peer = newPeer();
  await register(peer);
  await stack.withdraw();
  try {
    const refused = await submit(peer, 5);
    assert.equal(refused.status, 502);
    assert.match(refused.error, /^the sponsor does not pay \(.*AA31 paymaster deposit too low.*\)/);
  } finally {
    await stack.deposit();
  }
  assert.equal(app.bundler.sent.length, 1);
  assert.equal((await submit(peer, 5)).status, 200);
  assert.deepEqual(await rewards(peer), [5n]);
});

test("AA21: without a sponsor the account pays for itself, once it has money", async () => {
  const unsponsored = await App.start(chain, { PAYMASTER_POLICY_ID: "" });
  try {
    const { account } = await unsponsored.seed();
    const peer = newPeer();
    const refused = await register(peer, unsponsored);
    assert.equal(refused.status, 502);
    assert.match(refused.error, /AA21 didn't pay prefund/);
    await stack.fund(account);
    const before = await chain.client.getBalance({ address: account });
    const reply = await register(peer, unsponsored);
    assert.equal(reply.status, 200, reply.text);
    assert.equal(await ownerOf(peer), account);
    assert.ok((await chain.client.getBalance({ address: account })) < before);
  } finally {
    await unsponsored.stop();
  }
});

test("a call that would be reverted is not sent; one that is reverted when mined comes back by its name", async () => {
  const peer = newPeer();
  await register(newPeer());
  assert.equal((await submit(peer, 5)).error, "InvalidVoterPeerId");
  assert.equal(app.bundler.sent.length, 1);
  app.bundler.beforeSending = async () => {
    app.bundler.beforeSending = nothing;
    await chain.write(chain.coordinator, "registerPeer", [peer]); // by another account, after the estimate
  };
  const reply = await register(peer);
  assert.deepEqual([reply.status, reply.error], [400, "PeerIdAlreadyRegistered"], reply.text);
  const { logs } = await chain.client.getTransactionReceipt({ hash: reply.hash });
  const [{ args }] = parseEventLogs({ abi: entryPoint07Abi, eventName: "UserOperationEvent", logs });
  assert.deepEqual([args.sender, args.success], [key.account, false]);
  assert.equal((await register(newPeer())).status, 200);
});

for (const isMined of [false, true]) {
  const found = isMined ? "the receipt is found" : "the app replaces it after 20 s, and who waits comes after";
  test(`the bundler killed after it took an operation, ${isMined ? "mined" : "not mined"}: ${found}`, async () => {
    const [peer, other] = [newPeer(), newPeer()];
    await register(peer);
    const taking = stack.alto;
    const knowingNothing = await stack.newAlto();
    if (!isMined) await taking.ask("debug_bundler_setBundlingMode", ["manual"]);
    // Not before the answer to the sending: a slow one is asked for again, and a mined operation is refused then.
    app.bundler.beforeReceipt = async () => {
      app.bundler.beforeReceipt = nothing;
      if (isMined) await eventually(async () => assert.deepEqual(await rewards(peer), [5n]));
      await taking.stop();
      stack.alto = knowingNothing;
    };
    const replies = await Promise.all([submit(peer, 5), register(other)]);
    assert.deepEqual(replies.map(({ status }) => status), [200, 200], replies.map(({ text }) => text).join());
    assert.deepEqual(await rewards(peer), [5n]);
    assert.equal(await ownerOf(other), key.account);
    assert.equal(app.bundler.sent.length, isMined ? 3 : 4);
  });
}

test("four nodes on one account through two apps, each asking twice: every reward counts once, none is lost", async () => {
  const elsewhere = await App.start(chain);
  try {
    await elsewhere.seed({ privateKey: key.privateKey, entity: 2n });
    await register(newPeer()); // makes the account
    const nodes = [app, app, elsewhere, elsewhere].map((at, index) => ({ at, peer: newPeer(), points: 10 ** index }));
    await Promise.all(
      nodes.map(async ({ at, peer, points }) => {
        const registered = await register(peer, at);
        assert.equal(registered.status, 200, registered.text);
        const replies = await Promise.all([submit(peer, points, at), submit(peer, points, at)]);
        const said = replies.map(({ status, error }) => [status, error]).sort(); // either may come first
        assert.deepEqual(said, [[200, undefined], [400, "RewardAlreadySubmitted"]], replies.map(({ text }) => text).join());
        const vote = { orgId: ORG_ID, roundNumber: 0, winners: [peer], peerId: peer };
        assert.equal((await at.post("/api/submit-winner", vote)).status, 200);
      }),
    );
    const peers = nodes.map(({ peer }) => peer);
    assert.deepEqual(await rewards(...peers), [1n, 10n, 100n, 1000n]);
    for (const peer of peers) assert.deepEqual(await chain.read(chain.coordinator, "getVoterVotes", [0n, peer]), [peer]);
    assert.deepEqual(await Promise.all(peers.map(ownerOf)), peers.map(() => key.account));
  } finally {
    await elsewhere.stop();
  }
});
