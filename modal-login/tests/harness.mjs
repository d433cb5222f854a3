// The built app, between a stand-in of Alchemy and a real ERC-4337 stack, over a real chain (anvil) with the real contracts.
import { spawn } from "node:child_process";
import { generateKeyPairSync } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdtemp, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { generatePrivateKey, privateKeyToAccount, privateKeyToAddress } from "viem/accounts";
import { Alchemy, API_KEY, ORG_ID } from "./alchemy.mjs";
import { Bundler } from "./bundler.mjs";
import { clientFor, Erc4337 } from "./erc4337.mjs";
import { eventually, freePort, orEnd, stopped } from "./processes.mjs";

const ROOT = join(import.meta.dirname, "..");
const ARTIFACTS = join(ROOT, "..", "codezero", "ledger", "artifacts");
export const CHAIN_ID = 685685;
/** The key of anvil's first account: publicly known, it holds nothing anywhere. */
const OWNER = privateKeyToAccount("0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80");

export class Chain {
  static async start() {
    const chain = new Chain();
    const port = await freePort();
    chain.url = `http://127.0.0.1:${port}`;
    const options = ["--host", "127.0.0.1", "--port", String(port), "--chain-id", String(CHAIN_ID), "--silent"];
    chain.process = spawn(anvil(), options, { stdio: "ignore" });
    await orEnd(chain, chain.prepare());
    return chain;
  }

  async prepare() {
    this.client = await eventually(() => clientFor(this.url, OWNER));
    this.erc4337 = await Erc4337.start(this.url);
    this.coordinator = await this.deploy("SwarmCoordinator", (address) => [address, 1n]);
    this.market = await this.deploy("PredictionMarket", (address) => [this.coordinator.address, address, 10n ** 18n]);
  }

  async deploy(name, argumentsFor) {
    const { abi, bytecode } = JSON.parse(await readFile(join(ARTIFACTS, `${name}.json`), "utf8"));
    const args = argumentsFor(OWNER.address);
    const hash = await this.client.deployContract({ abi, bytecode, args });
    const { contractAddress: address } = await this.client.waitForTransactionReceipt({ hash });
    return { abi, address };
  }

  read(contract, functionName, args = []) {
    return this.client.readContract({ ...contract, functionName, args });
  }

  async write(contract, functionName, args = []) {
    const hash = await this.client.writeContract({ ...contract, functionName, args });
    return this.client.waitForTransactionReceipt({ hash });
  }

  async stop() {
    await this.erc4337?.stop();
    await stopped(this.process);
  }
}

/** The app with its stand-ins. `url` is what browsers and nodes use. */
export class App {
  static async start(chain, environment = {}) {
    const app = new App();
    app.chain = chain;
    app.folder = await mkdtemp(join(tmpdir(), "sign-in-"));
    app.data = join(app.folder, "temp-data");
    app.alchemy = await new Alchemy().listen();
    app.bundler = await new Bundler(chain.url, chain.erc4337).listen();
    const port = await freePort();
    app.url = `http://localhost:${port}`;
    app.environment = {
      PATH: process.env.PATH,
      PORT: String(port),
      DATA_DIR: app.data,
      NODE_KEYS: join(app.folder, "swarm.pem"),
      ALCHEMY_BASE_URL: app.alchemy.url,
      ALCHEMY_API_KEY: API_KEY,
      PAYMASTER_POLICY_ID: "policy-1",
      BUNDLER_URL: app.bundler.url,
      CHAIN_ID: String(CHAIN_ID),
      SMART_CONTRACT_ADDRESS: chain.coordinator.address,
      PRG_CONTRACT_ADDRESS: chain.market.address,
      SIGN_IN_ENV_FILE: "/dev/null",
      ...environment,
    };
    await app.run();
    return app;
  }

  /** Starts it again, with other settings. */
  async again(environment) {
    await stopped(this.process);
    Object.assign(this.environment, environment);
    await this.run();
  }

  async run() {
    this.output = "";
    this.process = spawn(process.execPath, ["start.mjs"], { cwd: ROOT, env: this.environment, stdio: ["ignore", "pipe", "pipe"] });
    this.process.stdout.on("data", (text) => (this.output += text));
    this.process.stderr.on("data", (text) => (this.output += text));
    await eventually(async () => {
      if (this.process.exitCode !== null) throw new Error(this.output);
      return this.get("/api/health");
    });
  }

  /**
   * As if a user had signed in: the files of a session, whose key owns an account, new if the key is. Sign-ins on two
   * machines have entities of their own for one account.
   */
  async seed({ privateKey = generatePrivateKey(), owner, deadline = inDays(62), activated = true, entity = 1n } = {}) {
    await mkdir(this.data, { recursive: true });
    const publicKey = privateKeyToAddress(privateKey);
    const { address: account, initCode } = await this.chain.erc4337.accountOf(owner ?? publicKey);
    const user = { orgId: ORG_ID, address: `0x${"5".repeat(40)}`, userId: "user-1", email: "anna@example.org" };
    const done = { accountAddress: account, initCode, deferredActionDigest: digest(publicKey, deadline, entity) };
    const key = { publicKey, privateKey, createdAt: "2026-11-21T00:00:00.000Z", activated, ...(activated && done) };
    await writeFile(join(this.data, "userData.json"), JSON.stringify({ [ORG_ID]: user }));
    await writeFile(join(this.data, "userApiKey.json"), JSON.stringify({ [ORG_ID]: [key] }));
    return { publicKey, privateKey, account };
  }

  /** A node's key file, as codezero writes it. Returns the peer id that the app has for it. */
  async makeIdentity() {
    const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
    const der = privateKey.export({ type: "pkcs1", format: "der" });
    const header = Buffer.from([0x08, 0x00, 0x12, (der.length & 0x7f) | 0x80, der.length >> 7]);
    await writeFile(this.environment.NODE_KEYS, Buffer.concat([header, der]));
    const { peers } = await (await this.get("/api/machine")).json();
    return peers[0];
  }

  async stored(name) {
    return JSON.parse(await readFile(join(this.data, name), "utf8"));
  }

  /** What nodes send. */
  async credentials() {
    return { authorization: `Bearer ${await readFile(join(this.data, "token"), "utf8").catch(() => "")}` };
  }

  /** The address that lets a browser in, once. */
  async address() {
    return `${this.url}/?ticket=${(await this.post("/api/ticket", {})).ticket}`;
  }

  async get(path, headers = {}) {
    return fetch(this.url + path, { headers: { ...(await this.credentials()), ...headers } });
  }

  async post(path, body, headers = {}) {
    const text = typeof body === "string" ? body : JSON.stringify(body);
    const type = { "content-type": "application/json" };
    const sent = { ...type, ...(await this.credentials()), ...headers };
    const reply = await fetch(this.url + path, { method: "POST", body: text, headers: sent });
    const answer = await reply.text();
    return { status: reply.status, text: answer, ...(answer.startsWith("{") && JSON.parse(answer)) };
  }

  async stop() {
    await stopped(this.process);
    this.alchemy.close();
    this.bundler.close();
    await rm(this.folder, { recursive: true, force: true });
  }
}

/** Returns bytes in the form of account-kit's: 1 byte, nonce, length, validation, deadline, call; then the signature. */
export function digest(publicKey, deadline, entity = 1n) {
  const nonce = (((entity << 8n) | 3n) << 64n).toString(16).padStart(64, "0");
  const call = `1bbf564c${publicKey.slice(2).toLowerCase()}`;
  const action = `${"00".repeat(20)}01${deadline.toString(16).padStart(12, "0")}${call}`;
  return `0x00${nonce}${(action.length / 2).toString(16).padStart(8, "0")}${action}00000042ff00${"22".repeat(64)}`;
}

export function inDays(days) {
  return Math.floor(Date.now() / 1000) + days * 86_400;
}

/** Returns the anvil to run: npm's on Linux, elsewhere foundry's own, in the path. */
function anvil() {
  const installed = join(import.meta.dirname, "node_modules", "@foundry-rs", "anvil-linux-amd64", "bin", "anvil");
  return existsSync(installed) ? installed : "anvil";
}
