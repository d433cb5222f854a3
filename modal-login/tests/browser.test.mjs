// The page as a user meets it, in Chromium. Screenshots go to modal-login/screenshots/.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { after, afterEach, before, beforeEach, test } from "node:test";
import { decodeAbiParameters, decodeFunctionData, parseAbi, recoverTypedDataAddress } from "viem";
import { API_KEY, ORG_ID, signer } from "./alchemy.mjs";
import { addPasskey, Browser, PHONE, screenshot } from "./browser.mjs";
import { App, Chain, CHAIN_ID, inDays } from "./harness.mjs";

const installAbi = parseAbi(["function installValidation(bytes25 config, bytes4[] selectors, bytes data, bytes[] hooks)"]);
const WITHIN = { timeout: 30_000 };
let chain, app, browser, visit;

before(async () => {
  browser = await Browser.launch();
  chain = await Chain.start();
});
after(async () => {
  await browser?.close();
  await chain?.stop();
});
beforeEach(async () => {
  app = await App.start(chain);
});
afterEach(async () => {
  await visit?.context.close();
  await app.stop();
});

/** A visitor whom the app lets in. */
async function open(options) {
  visit = await browser.visit(app.url, options);
  await visit.context.request.get(await app.address());
  return visit.page;
}

const title = (page, text) => page.getByRole("heading", { name: text, exact: true }).waitFor(WITHIN);
const button = (page, name) => page.getByRole("button", { name, exact: true });

async function signInByEmail(page, name = "Sign in") {
  await button(page, name).click();
  const email = page.getByPlaceholder("Email");
  await email.fill("anna@example.org");
  await email.press("Enter");
  // The dialog asks for the code before it has heard that one was sent; nobody is as fast as a test.
  await page.waitForFunction(() => Object.keys(localStorage).some((key) => key.includes("temporary")), null, WITHIN);
  // All digits at once, as a phone fills them in: one by one, the dialog may lose some.
  await page.getByLabel("One time password input for the 1 digit").fill("123456", WITHIN);
}

/** That a stored key's deferred action is what the user signed: this key as a global validation of the account, for 62 days. */
async function assertGrants({ publicKey, accountAddress, deferredActionDigest: digest }) {
  const bytes = (start, end) => `0x${digest.slice(2 + 2 * start, end && 2 + 2 * end)}`;
  const nonce = BigInt(bytes(1, 33));
  const end = 37 + Number(bytes(33, 37));
  const [deadline, call, signature] = [Number(bytes(58, 64)), bytes(64, end), bytes(end + 5)];
  assert.ok(Math.abs(deadline - inDays(62)) < 60);
  const { args } = decodeFunctionData({ abi: installAbi, data: call });
  assert.equal(args[0].slice(42), "0000000105"); // entity 1; for operations (1), of any function (4)
  assert.deepEqual(decodeAbiParameters([{ type: "uint32" }, { type: "address" }], args[2]), [1, publicKey]);
  assert.equal(args[3].length, 1); // the module that ends it
  const owner = await recoverTypedDataAddress({
    domain: { chainId: CHAIN_ID, verifyingContract: accountAddress },
    types: { DeferredAction: ["uint256 nonce", "uint48 deadline", "bytes call"].map(field) },
    primaryType: "DeferredAction",
    message: { nonce, deadline, call },
    signature,
  });
  assert.equal(owner, signer.address);
}

function field(declaration) {
  const [type, name] = declaration.split(" ");
  return { type, name };
}

/** What holds however a user signs in. */
async function assertNothingLeaks() {
  assert.deepEqual(visit.foreign, []);
  assert.deepEqual(visit.errors, []);
  const received = (await Promise.all(visit.received)).join("\n");
  assert.ok(!received.includes(API_KEY), "the browser got the API key");
  for (const { privateKey } of (await app.stored("userApiKey.json"))[ORG_ID]) {
    assert.ok(!received.includes(privateKey.slice(2)), "the browser got a private key");
    assert.ok(!app.output.includes(privateKey.slice(2)), "the log has a private key");
  }
}

test("email and code: the node gets a key it can write with; a reload makes no second one; log out", async () => {
  const page = await open();
  await page.goto(app.url);
  await title(page, "Sign in for your node");
  await screenshot(page, "signed-out-desktop");
  await signInByEmail(page);
  await title(page, "You are signed in");
  await page.getByText("As anna@example.org").waitFor(WITHIN);
  const keys = (await app.stored("userApiKey.json"))[ORG_ID];
  assert.equal(keys.length, 1);
  assert.equal(keys[0].activated, true);
  await page.getByText(keys[0].accountAddress).waitFor(WITHIN);

  // A ModularAccountV2 is not to be had: another account, of the node's key, takes its place.
  await chain.erc4337.place(keys[0].accountAddress, keys[0].publicKey);
  const peerId = `QmBrowser${Date.now()}`;
  const reply = await app.post("/api/register-peer", { orgId: ORG_ID, peerId });
  assert.equal(reply.status, 200, reply.text);
  assert.deepEqual(await chain.read(chain.coordinator, "getEoa", [[peerId]]), [keys[0].accountAddress]);

  await assertGrants(keys[0]);

  await page.reload();
  await title(page, "You are signed in");
  await page.getByText(peerId).waitFor(WITHIN);
  assert.equal((await app.stored("userApiKey.json"))[ORG_ID].length, 1);
  await screenshot(page, "signed-in-desktop");

  await button(page, "Log out").click();
  await title(page, "Your node is signed in");
  await button(page, "Sign in again").waitFor(WITHIN);
  assert.equal((await app.stored("userApiKey.json"))[ORG_ID][0].activated, true);
  await page.reload();
  await title(page, "Your node is signed in");
  await screenshot(page, "logged-out-desktop");
  await assertNothingLeaks();
});

test("an existing passkey", async () => {
  const page = await open({ viewport: PHONE });
  await addPasskey(visit);
  app.alchemy.known = true;
  await page.goto(app.url);
  await title(page, "Sign in for your node");
  await screenshot(page, "signed-out-phone");
  await button(page, "Sign in").click();
  await page.getByText("I have a passkey").waitFor(WITHIN);
  await page.waitForTimeout(500); // the dialog slides in
  await screenshot(page, "dialog-phone");
  await page.getByText("I have a passkey").click();
  await title(page, "You are signed in");
  assert.equal((await app.stored("userApiKey.json"))[ORG_ID][0].activated, true);
  await page.reload();
  await title(page, "You are signed in");
  await screenshot(page, "signed-in-phone");
  await assertNothingLeaks();
});

test("Alchemy unreachable: told within 5 s, with what to do; the page goes on when it is back", async () => {
  app.alchemy.mode = "hangs";
  const page = await open({ viewport: PHONE });
  await page.goto(app.url);
  const started = Date.now();
  await title(page, "Alchemy cannot be reached");
  assert.ok(Date.now() - started < 10_000); // 5 s where nothing else runs
  await page.getByText("--testnet --sign-in wallet").waitFor(WITHIN);
  await page.getByText("./run_rl_swarm.sh --nodes 2").waitFor(WITHIN);
  await screenshot(page, "unreachable-phone");
  app.alchemy.mode = "ok";
  await button(page, "Try again now").click();
  await title(page, "Sign in for your node");
});

test("Alchemy goes away while the page is open: signing in tells so, instead of waiting without a word", async () => {
  const page = await open();
  await page.goto(app.url);
  await title(page, "Sign in for your node");
  app.alchemy.mode = 503;
  const started = Date.now();
  await button(page, "Sign in").click();
  await title(page, "Alchemy cannot be reached");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  assert.ok(Date.now() - started < 10_000); // 5 s where nothing else runs
  await page.getByText("it answers with HTTP 503").waitFor(WITHIN);
});

test("a browser that cannot load Turnkey's frame is told so", async () => {
  const page = await open({ turnkey: false, dark: true });
  await page.goto(app.url);
  await title(page, "Alchemy cannot be reached");
  await page.getByText("auth.turnkey.com").waitFor(WITHIN);
  await screenshot(page, "unreachable-desktop-dark");
});

test("a browser without crypto.subtle is sent to localhost", async () => {
  const page = await open({ dark: true, viewport: PHONE });
  await page.addInitScript(() => Object.defineProperty(Crypto.prototype, "subtle", { value: undefined }));
  await page.goto(app.url);
  await title(page, "Open this page on localhost");
  await screenshot(page, "insecure-phone-dark");
});

test("a page opened by its number moves to the name, which passkeys need", async () => {
  visit = await browser.visit(app.url);
  const { page } = visit;
  await page.goto((await app.address()).replace("localhost", "127.0.0.1"));
  await title(page, "Sign in for your node");
  assert.equal(page.url(), `${app.url}/`); // the ticket is gone from where people copy it
});

test("an address lets one browser in, and the page says how to get another", async () => {
  const address = await app.address();
  visit = await browser.visit(app.url);
  await visit.page.goto(address);
  await title(visit.page, "Sign in for your node");
  await visit.page.reload();
  await title(visit.page, "Sign in for your node");
  await visit.context.close();
  visit = await browser.visit(app.url);
  await visit.page.goto(address);
  await visit.page.getByText("This address was used before, or is too old.").waitFor(WITHIN);
  await visit.page.getByText("node start.mjs address").waitFor(WITHIN);
});

test("a key that has run out: sign in again, and the node has a new one", async () => {
  await app.seed({ deadline: inDays(-1) });
  const page = await open({ dark: true });
  await page.goto(app.url);
  await title(page, "Your session has expired");
  await screenshot(page, "expired-desktop-dark");
  await button(page, "Sign in again").click();
  await page.getByText("I have a passkey").waitFor(WITHIN);
  await page.waitForTimeout(500); // the dialog slides in
  await screenshot(page, "dialog-desktop-dark");
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  app.alchemy.known = true;
  await signInByEmail(page, "Sign in again");
  await title(page, "You are signed in");
  assert.equal(await (await app.get(`/api/get-api-key-status?orgId=${ORG_ID}`)).text(), "activated");
  await screenshot(page, "signed-in-desktop-dark");
});

test("a key that runs out within a week: signing in again gives the node a new one", async () => {
  await app.seed({ deadline: inDays(6) });
  app.alchemy.known = true;
  const page = await open();
  await page.goto(app.url);
  await title(page, "Your node is signed in");
  await signInByEmail(page, "Sign in again");
  await title(page, "You are signed in");
  assert.equal((await app.stored("userApiKey.json"))[ORG_ID].length, 2);
  await page.reload();
  await title(page, "You are signed in");
  assert.equal((await app.stored("userApiKey.json"))[ORG_ID].length, 2);
});

test("a browser's session that ran out does not matter to the node", async () => {
  await app.seed();
  const page = await open({ dark: true, viewport: PHONE });
  await page.addInitScript((orgId) => localStorage.setItem("codezero-signed-in", orgId), ORG_ID);
  await page.goto(app.url);
  await title(page, "Your node is signed in");
  await page.getByText("Your session in this browser has ended").waitFor(WITHIN);
  await screenshot(page, "session-ended-phone-dark");
});

test("a key that cannot be set up: the reason, and another try", async () => {
  const page = await open();
  await page.route("**/api/get-api-key", (route) => route.fulfill({ status: 502, json: { error: "Alchemy cannot be reached: x" } }), { times: 1 });
  await page.goto(app.url);
  await title(page, "Sign in for your node");
  await signInByEmail(page);
  await title(page, "Your node’s key could not be set up");
  await page.getByText("Alchemy cannot be reached: x").waitFor(WITHIN);
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await screenshot(page, "failed-desktop");
  await button(page, "Try again").click();
  await title(page, "You are signed in");
});

test("a page of another site can neither ask the app, nor read it, nor frame it", async () => {
  await app.seed();
  const hostile = createServer((_, response) => response.setHeader("content-type", "text/html").end("<h1>hello</h1>"));
  await new Promise((resolve) => hostile.listen(0, "127.0.0.1", resolve));
  try {
    const page = await open();
    await page.goto(`http://localhost:${hostile.address().port}`);
    const outcome = await page.evaluate(
      async ([url, orgId]) => {
        const body = JSON.stringify({ orgId, peerId: "QmHostile" });
        const json = { method: "POST", body, headers: { "content-type": "application/json" } };
        const read = await fetch(`${url}/api/machine`).then(() => "read", () => "refused");
        const asked = await fetch(`${url}/api/register-peer`, json).then(() => "asked", () => "refused");
        await fetch(`${url}/api/register-peer`, { method: "POST", mode: "no-cors", body }).catch(() => undefined);
        const form = document.createElement("form");
        Object.assign(form, { action: `${url}/api/register-peer`, method: "POST", enctype: "text/plain", target: "frame" });
        form.append(Object.assign(document.createElement("input"), { name: body.slice(0, -1) + ',"x":"', value: '"}' }));
        const frame = Object.assign(document.createElement("iframe"), { name: "frame" });
        document.body.append(frame, form);
        form.submit();
        await new Promise((resolve) => setTimeout(resolve, 500));
        return [read, asked];
      },
      [app.url, ORG_ID],
    );
    assert.deepEqual(outcome, ["refused", "refused"]);
    assert.deepEqual(app.bundler.asked, []);
    const framed = await page.evaluate(async (url) => {
      const frame = Object.assign(document.createElement("iframe"), { src: url });
      document.body.append(frame);
      await new Promise((resolve) => frame.addEventListener("load", resolve));
      return frame.contentDocument === null;
    }, app.url);
    assert.ok(framed);
    const texts = await Promise.all(page.frames().map((frame) => frame.locator("body").innerText().catch(() => "")));
    assert.ok(!texts.join().includes("Sign in"), texts.join());
  } finally {
    hostile.closeAllConnections();
    hostile.close();
  }
});

test("the peers of this machine are shown, and whether they are registered", async () => {
  await app.seed();
  const peerId = await app.makeIdentity();
  const page = await open();
  await page.goto(app.url);
  await title(page, "Your node is signed in");
  await page.getByText(peerId).waitFor(WITHIN);
  await page.getByText("not registered yet").waitFor(WITHIN);
  await app.post("/api/register-peer", { orgId: ORG_ID, peerId });
  await page.reload();
  await page.getByText("registered", { exact: true }).waitFor(WITHIN);
});
