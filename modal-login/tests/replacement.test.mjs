// An operation that the bundler loses: 20 s later the app sends another one with the same nonce.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { ORG_ID } from "./alchemy.mjs";
import { ACCOUNT, App, Chain } from "./harness.mjs";

let chain, app;
before(async () => {
  chain = await Chain.start();
  app = await App.start(chain);
  await app.seed();
});
after(async () => {
  await app?.stop();
  await chain?.stop();
});

test("what is not mined is replaced, once; those who wait for their turn come after", { timeout: 60_000 }, async () => {
  app.bundler.mode = "drops one";
  const replies = await Promise.all(
    ["QmLost", "QmNext"].map((peerId) => app.post("/api/register-peer", { orgId: ORG_ID, peerId })),
  );
  assert.deepEqual(replies.map(({ status }) => status), [200, 200], replies.map(({ text }) => text).join());
  assert.deepEqual(await chain.read(chain.coordinator, "getEoa", [["QmLost", "QmNext"]]), [ACCOUNT, ACCOUNT]);
  assert.equal(app.bundler.asked.filter((method) => method === "eth_sendUserOperation").length, 3);
});
