// A stand-in of a bundler with a paymaster, over a real chain: what an operation would do is done by the account itself.
//
//   node tests/bundler.mjs --rpc http://127.0.0.1:8545 --port 4337 [--key 0x...] [--mining-ms 200]
//
// With --key, the private key of the account, transactions are signed with it, on any chain; without, the chain must let
// one act for any account, as anvil does. Nonces are those of the EntryPoint, so that operations sent side by side are
// refused as they would be. It checks that the deferred action is there when the nonce says so, and keeps who has signed;
// no other rule of ERC-4337: no gas, no initCode, and not what the deferred action is.
import { createServer } from "node:http";
import { parseArgs } from "node:util";
import { decodeFunctionData, encodeAbiParameters, getAddress, keccak256, parseAbi, toHex } from "viem";
import { createPublicClient, createWalletClient, hashMessage, http, recoverAddress } from "viem";
import { entryPoint07Address, getUserOperationHash } from "viem/account-abstraction";
import { privateKeyToAccount } from "viem/accounts";

const executeAbi = parseAbi(["function execute(address target, uint256 value, bytes data)"]);
const entryPointAbi = parseAbi(["function getNonce(address sender, uint192 key) view returns (uint256)"]);
/** The flag in a nonce's key that an operation carries a deferred action, before its own signature of 67 bytes. */
const DEFERRED = 2n;
const PLAIN_SIGNATURE_BYTES = 67;
const REVERT_REASON = keccak256(toHex("UserOperationRevertReason(bytes32,address,uint256,bytes)"));

/** `mode` has it do one wrong thing. `asked` has the methods, `signers` who signed the operations. */
export class Bundler {
  constructor(rpcUrl, { key, miningMs = 0 } = {}) {
    this.rpcUrl = rpcUrl;
    this.account = key && privateKeyToAccount(key);
    this.miningMs = miningMs;
    this.mode = "ok";
    this.asked = [];
    this.signers = [];
    this.authorizations = new Set();
    this.operations = new Map();
    this.nonces = new Map();
  }

  async listen(port = 0) {
    this.server = createServer((request, response) => void this.serve(request, response));
    await new Promise((resolve) => this.server.listen(port, "127.0.0.1", resolve));
    this.url = `http://127.0.0.1:${this.server.address().port}`;
    return this;
  }

  close() {
    this.server.closeAllConnections();
    this.server.close();
  }

  async serve(request, response) {
    let text = "";
    for await (const chunk of request) text += chunk;
    this.authorizations.add(request.headers.authorization ?? "");
    if (this.mode === "hangs") return;
    const asked = JSON.parse(text);
    const answers = await Promise.all([asked].flat().map((one) => this.answer(one)));
    const failed = answers.some((answer) => answer.error);
    let status = failed && this.mode === "errors as HTTP 400" ? 400 : 200;
    let body = JSON.stringify(Array.isArray(asked) ? answers : answers[0]);
    if (this.mode === "HTTP 503") [status, body] = [503, "<html>overloaded at https://example.org/secret-key</html>"];
    response.writeHead(status, { "content-type": "application/json" }).end(body);
  }

  async answer({ id, method, params }) {
    this.asked.push(method);
    try {
      return { jsonrpc: "2.0", id, result: await this.handle(method, params ?? []) };
    } catch (error) {
      const { code = -32000, message = String(error), data } = error;
      return { jsonrpc: "2.0", id, error: { code, message, data } };
    }
  }

  async handle(method, params) {
    switch (method) {
      case "rundler_maxPriorityFeePerGas":
        return "0x1";
      case "eth_supportedEntryPoints":
        return [entryPoint07Address];
      case "alchemy_requestGasAndPaymasterAndData": {
        const { policyId, userOperation } = params[0];
        if (!policyId) throw { code: -32602, message: "no policy" };
        await this.simulate(userOperation);
        return { ...GAS, ...FEES, ...PAYMASTER };
      }
      case "eth_estimateUserOperationGas":
        await this.simulate(params[0]);
        return GAS;
      case "eth_sendUserOperation":
        return this.send(params[0]);
      case "eth_getUserOperationReceipt":
        return this.receipt(params[0]);
      case "eth_getUserOperationByHash":
        return this.operations.get(params[0])?.operation ?? null;
      case "eth_call":
        return this.call(params);
      default:
        return this.rpc(method, params);
    }
  }

  async call(params) {
    const [{ to, data }] = params;
    // Without a receiver: account-kit's reader of the next entity id and nonce. It asks for entity 1, deferred, global.
    if (!to) return toHex(0x103n << 64n, { size: 32 });
    if (getAddress(to) !== entryPoint07Address) return this.rpc("eth_call", params);
    const { args } = decodeFunctionData({ abi: entryPointAbi, data });
    return toHex(this.nextNonce(...args), { size: 32 });
  }

  nextNonce(sender, key) {
    return (key << 64n) | (this.nonces.get(`${sender.toLowerCase()} ${key}`) ?? 0n);
  }

  async simulate(operation) {
    if (this.mode === "AA23") throw { code: -32500, message: "AA23 reverted: the key is not installed" };
    if (this.mode === "fails when mined") return;
    try {
      await this.rpc("eth_call", [{ from: operation.sender, ...inner(operation) }, "latest"]);
    } catch (error) {
      const found = error.data?.data ?? error.data ?? "0x";
      throw { code: -32521, message: "execution reverted", data: { revertData: found } };
    }
  }

  async send(operation) {
    await this.simulate(operation);
    if (this.mode === "drops one") {
      this.mode = "ok";
      return keccak256(toHex(JSON.stringify(operation)));
    }
    const nonce = BigInt(operation.nonce);
    const key = nonce >> 64n;
    if (nonce !== this.nextNonce(operation.sender, key)) throw { code: -32500, message: "AA25 invalid account nonce" };
    if (this.busy) throw { code: -32602, message: "replacement underpriced" };
    const carries = (operation.signature.length - 2) / 2 > PLAIN_SIGNATURE_BYTES;
    if (carries !== ((key & DEFERRED) !== 0n)) throw { code: -32500, message: "AA23 reverted: deferred action" };
    this.busy = true;
    const hash = await this.hashOf(operation);
    this.signers.push(await recoverAddress({ hash: hashMessage({ raw: hash }), signature: signatureOf(operation) }));
    await new Promise((resolve) => setTimeout(resolve, this.miningMs));
    const transaction = await this.transact(operation);
    this.nonces.set(`${operation.sender.toLowerCase()} ${key}`, (nonce & (2n ** 64n - 1n)) + 1n);
    this.operations.set(hash, { operation, transaction });
    this.busy = false;
    return hash;
  }

  async hashOf(operation) {
    const chainId = Number(await this.rpc("eth_chainId", []));
    const numbers = ["nonce", "callGasLimit", "verificationGasLimit", "preVerificationGas", "maxFeePerGas"];
    numbers.push("maxPriorityFeePerGas", "paymasterVerificationGasLimit", "paymasterPostOpGasLimit");
    const entries = Object.entries(operation).map(([name, value]) => [name, numbers.includes(name) ? BigInt(value) : value]);
    const userOperation = Object.fromEntries(entries);
    return getUserOperationHash({ chainId, entryPointAddress: entryPoint07Address, entryPointVersion: "0.7", userOperation });
  }

  async transact(operation) {
    const call = { ...inner(operation), gas: toHex(2_000_000) };
    if (this.account) {
      const chain = { id: Number(await this.rpc("eth_chainId", [])), name: "", nativeCurrency: {}, rpcUrls: {} };
      const options = { account: this.account, chain, transport: http(this.rpcUrl) };
      const hash = await createWalletClient(options).sendTransaction({ to: call.to, data: call.data, gas: 2_000_000n });
      await createPublicClient(options).waitForTransactionReceipt({ hash, pollingInterval: 100 });
      return hash;
    }
    await this.rpc("anvil_impersonateAccount", [operation.sender]);
    await this.rpc("anvil_setBalance", [operation.sender, toHex(10n ** 18n)]);
    return this.rpc("eth_sendTransaction", [{ from: operation.sender, ...call }]);
  }

  async receipt(hash) {
    const known = this.operations.get(hash);
    const receipt = known && (await this.rpc("eth_getTransactionReceipt", [known.transaction]));
    if (!receipt) return null;
    const { sender, nonce } = known.operation;
    const success = receipt.status === "0x1";
    const logs = success ? receipt.logs : [await this.revertLog(hash, known.operation, receipt)];
    const common = { userOpHash: hash, entryPoint: entryPoint07Address, sender, nonce, success, logs };
    return { ...common, actualGasCost: "0x1", actualGasUsed: "0x1", receipt: { ...receipt, logs } };
  }

  /** As the EntryPoint writes it, which here is not there. */
  async revertLog(hash, operation, { blockNumber, blockHash, transactionHash }) {
    const found = await this.rpc("eth_call", [{ from: operation.sender, ...inner(operation) }, "latest"]).catch((e) => e);
    const reason = found.data?.data ?? found.data ?? "0x";
    const data = encodeAbiParameters([{ type: "uint256" }, { type: "bytes" }], [BigInt(operation.nonce), reason]);
    const topics = [REVERT_REASON, hash, encodeAbiParameters([{ type: "address" }], [operation.sender])];
    const place = { blockNumber, blockHash, transactionHash, transactionIndex: "0x0", logIndex: "0x0", removed: false };
    return { address: entryPoint07Address, topics, data, ...place };
  }

  async rpc(method, params) {
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
    const reply = await fetch(this.rpcUrl, { method: "POST", body, headers: { "content-type": "application/json" } });
    const { result, error } = await reply.json();
    if (error) throw error;
    return result;
  }
}

const GAS = { callGasLimit: "0x30000", verificationGasLimit: "0x30000", preVerificationGas: "0x10000" };
const FEES = { maxFeePerGas: "0x3b9aca00", maxPriorityFeePerGas: "0x1" };
const PAYMASTER = {
  paymaster: `0x${"33".repeat(20)}`,
  paymasterData: "0x",
  paymasterVerificationGasLimit: "0x1",
  paymasterPostOpGasLimit: "0x1",
};

/** What the account is to do, in `execute`, which executeUserOp (0x8dd7712f) may wrap. */
function inner({ callData }) {
  const data = callData.toLowerCase().startsWith("0x8dd7712f") ? `0x${callData.slice(10)}` : callData;
  const [to, value, call] = decodeFunctionData({ abi: executeAbi, data }).args;
  return { to, value: toHex(value), data: call };
}

function signatureOf({ signature }) {
  return `0x${signature.slice(-130)}`;
}

if (process.argv[1] === import.meta.filename) {
  const { values } = parseArgs({
    options: {
      rpc: { type: "string" },
      port: { type: "string", default: "0" },
      key: { type: "string" },
      "mining-ms": { type: "string", default: "0" },
    },
  });
  const bundler = await new Bundler(values.rpc, { key: values.key, miningMs: Number(values["mining-ms"]) }).listen(
    Number(values.port),
  );
  console.log(`bundler: ${bundler.url}`);
}
