// ERC-4337 on a local chain: the EntryPoint v0.7 at its own address, accounts, a paymaster, and alto, the bundler. The
// contracts are those of @account-abstraction/contracts; accounts are its SimpleAccount.
import { createRequire } from "node:module";
import { concat, createWalletClient, encodeAbiParameters, encodeFunctionData, http, pad, parseEther } from "viem";
import { publicActions, toHex } from "viem";
import { entryPoint07Abi, entryPoint07Address, formatUserOperation } from "viem/account-abstraction";
import { getUserOperationHash, toPackedUserOperation } from "viem/account-abstraction";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { Alto, ask } from "./alto.mjs";

const require = createRequire(import.meta.url);
const artifact = (name) => require(`@account-abstraction/contracts/artifacts/${name}.json`);
/** A contract that anvil and most chains have: it puts the same code at the same address everywhere. */
const DEPLOYER = "0x4e59b44847b379578588920cA78FbF26c0B4956C";
const ENTRY_POINT_SALT = "0x90d8084deab30c2a37c45e8d47f49f2f7965183cb6990a98943ef94940681de3";
/** A signature of the right form, and nobody's: gas is estimated with it. */
const NO_SIGNATURE = `0x${"f".repeat(31)}${"0".repeat(33)}7${"a".repeat(63)}1c`;
const PAYMASTER_FUNDS = parseEther("100");

export class Erc4337 {
  static async start(rpcUrl) {
    const stack = new Erc4337();
    stack.rpcUrl = rpcUrl;
    stack.client = await clientFor(rpcUrl, privateKeyToAccount(generatePrivateKey()));
    await stack.fund(stack.client.account.address);
    const { bytecode } = artifact("EntryPoint");
    await stack.mined(stack.client.sendTransaction({ to: DEPLOYER, data: concat([ENTRY_POINT_SALT, bytecode]) }));
    stack.payer = privateKeyToAccount(generatePrivateKey());
    stack.factory = await stack.deploy("SimpleAccountFactory", [entryPoint07Address]);
    stack.paymaster = await stack.deploy("VerifyingPaymaster", [entryPoint07Address, stack.payer.address]);
    await stack.deposit();
    stack.alto = await stack.newAlto();
    return stack;
  }

  newAlto() {
    return Alto.start(this.rpcUrl, (address) => this.fund(address));
  }

  fund(address) {
    return ask(this.rpcUrl, "anvil_setBalance", [address, toHex(parseEther("1000"))]);
  }

  async deploy(name, args) {
    const { abi, bytecode } = artifact(name);
    const { contractAddress: address } = await this.mined(this.client.deployContract({ abi, bytecode, args }));
    return { abi, address };
  }

  deposit() {
    return this.write(this.paymaster, "deposit", [], PAYMASTER_FUNDS);
  }

  /** Takes all that the paymaster could pay with. */
  async withdraw() {
    const left = await this.client.readContract({ ...this.paymaster, functionName: "getDeposit" });
    await this.write(this.paymaster, "withdrawTo", [this.client.account.address, left]);
  }

  async write(contract, functionName, args, value) {
    return this.mined(this.client.writeContract({ ...contract, functionName, args, value }));
  }

  async mined(sent) {
    const receipt = await this.client.waitForTransactionReceipt({ hash: await sent });
    if (receipt.status !== "success") throw new Error(`${receipt.transactionHash} failed`);
    return receipt;
  }

  /** Returns the address that an owner's account has or will have, and what makes it with its first operation. */
  async accountOf(owner) {
    const args = [owner, 0n];
    const address = await this.client.readContract({ ...this.factory, functionName: "getAddress", args });
    const call = encodeFunctionData({ ...this.factory, functionName: "createAccount", args });
    return { address, initCode: concat([this.factory.address, call]) };
  }

  /** Puts an owner's account at the address of one whose own code is not to be had. */
  async place(address, owner) {
    const implementation = await this.client.readContract({ ...this.factory, functionName: "accountImplementation" });
    const code = await this.client.getCode({ address: implementation });
    await ask(this.rpcUrl, "anvil_setCode", [address, code]);
    await ask(this.rpcUrl, "anvil_setStorageAt", [address, pad("0x0"), pad(owner)]);
  }

  /** What gas is estimated with, and what makes the paymaster pay for an operation whose gas is known. */
  async paymasterData(operation) {
    const data = (signature) => concat([encodeAbiParameters([{ type: "uint48" }, { type: "uint48" }], [0, 0]), signature]);
    const asked = { ...operation, paymaster: this.paymaster.address, paymasterData: data(NO_SIGNATURE) };
    if (!operation.callGasLimit) return asked.paymasterData;
    const args = [toPackedUserOperation(formatUserOperation(asked)), 0, 0];
    const raw = await this.client.readContract({ ...this.paymaster, functionName: "getHash", args });
    return data(await this.payer.signMessage({ message: { raw } }));
  }

  /** An operation that was changed: paid for and signed anew. */
  async signed(changed, privateKey) {
    const operation = { ...changed, paymasterData: await this.paymasterData(changed) };
    const entryPoint = { entryPointAddress: entryPoint07Address, entryPointVersion: "0.7" };
    const userOperation = formatUserOperation(operation);
    const raw = getUserOperationHash({ chainId: this.client.chain.id, ...entryPoint, userOperation });
    return { ...operation, signature: await privateKeyToAccount(privateKey).signMessage({ message: { raw } }) };
  }

  /** Gives operations to the EntryPoint, as a bundler that checks nothing. Throws: why the EntryPoint refuses them. */
  async handle(...operations) {
    const packed = operations.map((operation) => toPackedUserOperation(formatUserOperation(operation)));
    const call = { address: entryPoint07Address, abi: entryPoint07Abi, functionName: "handleOps" };
    const args = [packed, this.client.account.address];
    await this.client.simulateContract({ ...call, args, account: this.client.account });
    return this.write(call, "handleOps", args);
  }

  stop() {
    return this.alto?.stop();
  }
}

/** Reads and writes, as an account. */
export async function clientFor(url, account) {
  const chain = { id: Number(await ask(url, "eth_chainId", [])), name: "test", nativeCurrency: {}, rpcUrls: {} };
  const transport = http(url, { retryCount: 0 });
  return createWalletClient({ account, chain, transport, pollingInterval: 50 }).extend(publicActions);
}
