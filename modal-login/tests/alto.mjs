// alto, an ERC-4337 bundler under the GPL-3.0: run as a program of its own, imported nowhere.
import { spawn } from "node:child_process";
import { join } from "node:path";
import { entryPoint07Address } from "viem/account-abstraction";
import { generatePrivateKey, privateKeyToAddress } from "viem/accounts";
import { eventually, freePort, orEnd, stopped } from "./processes.mjs";

const PROGRAM = join(import.meta.dirname, "node_modules", "@pimlico", "alto", "esm", "cli", "alto.js");
const SETTINGS = {
  entrypoints: entryPoint07Address,
  "safe-mode": false, // anvil lacks the tracer that it takes: the rules of ERC-7562 stay unchecked
  "enable-debug-endpoints": true,
  "refilling-wallets": false,
  "utility-wallet-monitor": false,
  // In percent of its estimate, which is too low once operations beside it are gone that had read the same before.
  "v7-verification-gas-limit-multiplier": 200,
  "v7-paymaster-verification-gas-limit-multiplier": 200,
  "v7-call-gas-limit-multiplier": 200,
  "block-time": 200, // in ms; it looks for blocks four times as often
  "max-bundle-interval": 100,
  "log-level": "error",
};
/** Deploys what alto simulates with; the same for all, so that only the first one has to. */
const utility = generatePrivateKey();

export class Alto {
  /** `fund` gives an account money. */
  static async start(rpcUrl, fund) {
    const alto = new Alto();
    const port = await freePort();
    alto.url = `http://127.0.0.1:${port}`;
    const executor = generatePrivateKey();
    for (const key of [utility, executor]) await fund(privateKeyToAddress(key));
    const keys = { "utility-private-key": utility, "executor-private-keys": executor };
    const options = Object.entries({ ...SETTINGS, ...keys, port, "rpc-url": rpcUrl });
    const loopback = join(import.meta.dirname, "loopback.mjs");
    const command = ["--import", loopback, PROGRAM, "run", ...options.map(([name, value]) => `--${name}=${value}`)];
    // It reads a .env of its folder: there is none in this one.
    const place = { cwd: import.meta.dirname, env: { PATH: process.env.PATH } };
    alto.process = spawn(process.execPath, command, { ...place, stdio: ["ignore", "pipe", "pipe"] });
    let output = "";
    for (const stream of [alto.process.stdout, alto.process.stderr]) stream.on("data", (text) => (output += text));
    const isReady = async () => {
      if (alto.process.exitCode !== null) throw new Error(`alto ended: ${output}`);
      return fetch(`${alto.url}/health`);
    };
    await orEnd(alto, eventually(isReady, 120_000));
    return alto;
  }

  ask(method, params) {
    return ask(this.url, method, params);
  }

  /** Without a chance to do anything before. */
  stop() {
    return stopped(this.process, "SIGKILL");
  }
}

/** Throws an error that an RPC server answers, with its code and data. */
export async function ask(url, method, params) {
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
  const reply = await fetch(url, { method: "POST", body, headers: { "content-type": "application/json" } });
  const { result, error } = await reply.json();
  if (error) throw Object.assign(new Error(error.message), error);
  return result;
}
