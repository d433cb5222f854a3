// Alchemy's bundler and gas manager as the app asks them, in front of a real ERC-4337 stack (erc4337.mjs).
//
//   node tests/bundler.mjs --rpc http://127.0.0.1:8545 --owner 0x...    on any anvil; prints its address, and the owner's
//                                                                       account with what makes it
//
// Operations pass as the app makes them. The code of Alchemy's account, ModularAccountV2, is not to be had, so that a
// SimpleAccount of the session key is in its place. It has the same `execute` and signs the same hash; what differs is here:
//   - of a signature only the session key's own 65 bytes go on. A prefix, and the deferred action before it, are not part
//     of what is signed: that they are there is checked, and nothing else of them;
//   - two reads that a ModularAccountV2 would answer are answered here.
import { createServer } from "node:http";
import { parseArgs } from "node:util";
import { decodeFunctionData, encodeFunctionResult, parseAbi, toHex } from "viem";
import { entryPoint07Address } from "viem/account-abstraction";
import { API_KEY } from "./alchemy.mjs";
import { ask } from "./alto.mjs";
import { Erc4337 } from "./erc4337.mjs";

const accountAbi = parseAbi([
  "struct Validation { uint8 flags; bytes25[] validationHooks; bytes25[] executionHooks; bytes4[] selectors; }",
  "function getValidationData(bytes24 validation) view returns (Validation)",
]);
const NOTHING_INSTALLED = { flags: 0, validationHooks: [], executionHooks: [], selectors: [] };
/** The flag in a nonce's key that an operation carries a deferred action, before its own signature of 67 bytes. */
const DEFERRED = 2n;
const PLAIN_SIGNATURE_BYTES = 67;

/** `mode` has it do one wrong thing. `asked` has the methods, `sent` the operations that alto took. */
export class Bundler {
  constructor(rpcUrl, stack) {
    this.rpcUrl = rpcUrl;
    this.stack = stack;
    this.mode = "ok";
    this.asked = [];
    this.sent = [];
    /** What tests have happen between estimate and sending, between sending and its answer, and when a receipt is asked for. */
    this.beforeSending = this.afterSending = this.beforeReceipt = async () => undefined;
  }

  async listen() {
    this.server = createServer((request, response) => void this.serve(request, response));
    await new Promise((resolve) => this.server.listen(0, "127.0.0.1", resolve));
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
    if (this.mode === "hangs") return;
    const knows = request.headers.authorization === `Bearer ${API_KEY}`;
    if (this.mode === (knows ? "wants no key" : "wants the key")) {
      response.writeHead(401, { "content-type": "application/json" }).end("{}");
      return;
    }
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

  handle(method, params) {
    switch (method) {
      case "rundler_maxPriorityFeePerGas":
        return ask(this.rpcUrl, "eth_maxPriorityFeePerGas", []);
      case "alchemy_requestGasAndPaymasterAndData":
        return this.sponsor(params[0]);
      case "eth_sendUserOperation":
        return this.send(params[0]);
      case "eth_estimateUserOperationGas":
        return this.estimate(params[0]);
      case "eth_supportedEntryPoints":
      case "eth_getUserOperationByHash":
        return this.alto(method, params);
      case "eth_getUserOperationReceipt":
        return this.receipt(params);
      case "eth_call":
        return this.call(params);
      default:
        return ask(this.rpcUrl, method, params);
    }
  }

  /** A contract's refusal as Alchemy tells it: its bytes by themselves. */
  async alto(method, params) {
    try {
      return await this.stack.alto.ask(method, params);
    } catch (error) {
      const [, revertData] = /reason: (0x[0-9a-f]+)$/.exec(error.message) ?? [];
      throw revertData ? { code: -32521, message: "execution reverted", data: { revertData } } : error;
    }
  }

  /** The gas and fees of an operation, and a paymaster that pays for it. */
  async sponsor({ policyId, userOperation, dummySignature, overrides }) {
    if (!policyId) throw { code: -32602, message: "no policy" };
    const { fast: fees } = await this.alto("pimlico_getUserOperationGasPrice", []);
    const paid = { ...overridden(fees, overrides), paymaster: this.stack.paymaster.address };
    const asked = { ...plain({ ...userOperation, signature: dummySignature }), ...paid };
    const paymasterData = await this.stack.paymasterData(asked);
    const gas = await this.alto("eth_estimateUserOperationGas", [{ ...asked, paymasterData }, entryPoint07Address]);
    return { ...paid, ...gas, paymasterData: await this.stack.paymasterData({ ...asked, ...gas }) };
  }

  /** Returns the gas of an operation that its account pays for: Account Kit then takes none for a paymaster, and alto gives 0. */
  async estimate(operation) {
    const asked = [plain(operation), entryPoint07Address];
    const { callGasLimit, verificationGasLimit, preVerificationGas } = await this.alto("eth_estimateUserOperationGas", asked);
    return { callGasLimit, verificationGasLimit, preVerificationGas };
  }

  async send(operation) {
    const carries = (operation.signature.length - 2) / 2 > PLAIN_SIGNATURE_BYTES;
    const says = ((BigInt(operation.nonce) >> 64n) & DEFERRED) !== 0n;
    if (carries !== says) throw { code: -32500, message: "AA23 reverted: deferred action" };
    await this.beforeSending();
    const hash = await this.alto("eth_sendUserOperation", [plain(operation), entryPoint07Address]);
    this.sent.push(plain(operation));
    await this.afterSending();
    return hash;
  }

  async receipt(params) {
    await this.beforeReceipt();
    return this.alto("eth_getUserOperationReceipt", params);
  }

  async call(params) {
    const [{ to, data }] = params;
    // Without a receiver: account-kit's reader of the next entity id and nonce. It asks for entity 1, deferred, global.
    if (!to) return toHex(0x103n << 64n, { size: 32 });
    try {
      decodeFunctionData({ abi: accountAbi, data });
    } catch {
      return ask(this.rpcUrl, "eth_call", params); // another function
    }
    return encodeFunctionResult({ abi: accountAbi, result: NOTHING_INSTALLED });
  }
}

function plain(operation) {
  return { ...operation, signature: `0x${operation.signature.slice(-130)}` };
}

/** Account Kit asks for a value, or for a multiple of what is proposed. */
function overridden(values, overrides = {}) {
  const times = (value, { multiplier }) => toHex((BigInt(value) * BigInt(Math.round(multiplier * 100))) / 100n);
  const change = (value, wanted) => (typeof wanted === "string" ? wanted : times(value, wanted));
  return Object.fromEntries(
    Object.entries(values).map(([name, value]) => [name, overrides[name] ? change(value, overrides[name]) : value]),
  );
}

if (process.argv[1] === import.meta.filename) {
  const { rpc, owner } = parseArgs({ options: { rpc: { type: "string" }, owner: { type: "string" } } }).values;
  const stack = await Erc4337.start(rpc);
  process.once("SIGTERM", () => void stack.stop().then(() => process.exit()));
  const { address, initCode } = await stack.accountOf(owner);
  const bundler = await new Bundler(rpc, stack).listen();
  console.log(`bundler: ${bundler.url} ${address} ${initCode}`);
}
