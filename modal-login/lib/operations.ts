import { LocalAccountSigner } from "@aa-sdk/core";
import { createAlchemySmartAccountClient } from "@account-kit/infra";
import { createModularAccountV2 } from "@account-kit/smart-contracts";
import { encodeFunctionData, parseAbi, parseEventLogs, type Abi, type Address, type Hex, type Log } from "viem";
import { chain, transport } from "./chain";
import { isExpired } from "./deferred";
import { oneAtATime } from "./locks";
import { oneLine, Refusal } from "./replies";
import { decodeRevert, revertIn, type Revert } from "./reverts";
import { settings } from "./settings";
import { findUser, sessionKey, type SessionKey } from "./store";

const POLL_MS = 500;
/** The time after which an operation is replaced. Nodes wait 30 s for an answer, and hear of the replacement when they ask again. */
const MINED_WITHIN_MS = 20_000;
const entryPointAbi = parseAbi([
  "event UserOperationRevertReason(bytes32 indexed userOpHash, address indexed sender, uint256 nonce, bytes revertReason)",
]);

export interface Call {
  to: Address;
  abi: Abi;
  functionName: string;
  args: readonly unknown[];
}

export interface Written {
  /** The hash of the transaction that was mined. */
  hash: Hex;
  userOpHash: Hex;
}

/**
 * Writes to a contract as the user's smart account; returns when that was mined and succeeded. One at a time for each
 * account, since a second operation of the same nonce would replace the first.
 *
 * Throws Refusal: 400 with the name of the contract's error; 401 the session key has expired; 404 no such user; 500 no
 * key, or not mined, or refused without a name; 502 the bundler fails; 503 busy.
 */
export async function write(orgId: string, call: Call): Promise<Written> {
  await findUser(orgId);
  const key = await sessionKey(orgId);
  if (!key) throw new Refusal(500, "API key not activated: sign in again");
  if (isExpired(key.deferredActionDigest)) throw new Refusal(401, "the session key has expired: sign in again");
  return oneAtATime(`account ${key.accountAddress.toLowerCase()}`, async () => {
    try {
      const written = await send(key, call);
      console.log(`${call.functionName}: ${written.hash}`);
      return written;
    } catch (error) {
      throw error instanceof Refusal ? error : refusalFor(error, call);
    }
  });
}

async function send(key: SessionKey, call: Call): Promise<Written> {
  const client = await accountClient(key);
  const data = encodeFunctionData({ abi: call.abi, functionName: call.functionName, args: call.args });
  const sent = await client.sendUserOperation({ uo: { target: call.to, data } });
  const receipt = (await waitFor(client, [sent.hash])) ?? (await replace(key, sent));
  if (!receipt) throw new Refusal(500, `${call.functionName} was not mined in time; it may still be`);
  const written = { hash: receipt.receipt.transactionHash, userOpHash: receipt.userOpHash };
  if (!receipt.success) {
    throw refused(call, revertInLogs(receipt.receipt.logs, receipt.userOpHash, call.abi) ?? { reason: "" }, written);
  }
  return written;
}

/** The fees may have risen: sends the operation again, with the same nonce, so that only one of the two can be mined. */
async function replace(key: SessionKey, sent: Sent) {
  const client = await accountClient(key); // a new one: it forgets the deferred action once it has signed it
  try {
    const again = await client.dropAndReplaceUserOperation({ uoToDrop: sent.request });
    return await waitFor(client, [sent.hash, again.hash]);
  } catch (error) {
    const receipt = await client.getUserOperationReceipt(sent.hash).catch(() => null);
    if (receipt) return receipt; // it was mined after all, which is why the bundler takes no other
    throw error;
  }
}

async function accountClient(key: SessionKey) {
  const { policyId } = settings();
  const shared = { transport: transport(), chain: chain() };
  const account = await createModularAccountV2({
    ...shared,
    accountAddress: key.accountAddress,
    initCode: key.initCode,
    signer: LocalAccountSigner.privateKeyToAccountSigner(key.privateKey),
    // account-kit sends it along until the chain has taken it, which the EntryPoint's nonce tells.
    deferredAction: key.deferredActionDigest,
  });
  return createAlchemySmartAccountClient({ ...shared, account, ...(policyId && { policyId }) });
}

type AccountClient = Awaited<ReturnType<typeof accountClient>>;
type Sent = Awaited<ReturnType<AccountClient["sendUserOperation"]>>;

/** The receipt of whichever is mined, undefined if none is in time. What goes wrong while asking may pass. */
async function waitFor(client: AccountClient, hashes: readonly Hex[]) {
  const deadline = Date.now() + MINED_WITHIN_MS;
  while (Date.now() < deadline) {
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    for (const hash of hashes) {
      const receipt = await client.getUserOperationReceipt(hash).catch(() => null);
      if (receipt) return receipt;
    }
  }
  return undefined;
}

/** Why an operation failed that was mined all the same: the EntryPoint writes the reason down. */
function revertInLogs(logs: readonly unknown[], userOpHash: Hex, abi: Abi): Revert | undefined {
  const events = parseEventLogs({ abi: entryPointAbi, logs: logs as Log[] });
  const found = events.find((event) => event.args.userOpHash.toLowerCase() === userOpHash.toLowerCase());
  return found && decodeRevert(found.args.revertReason, abi);
}

/** A call's failure as an answer. Also for reads. */
export function refusalFor(error: unknown, call: Call): Refusal {
  const revert = revertIn(error, call.abi);
  if (revert) return refused(call, revert);
  const { name, shortMessage, details } = Object(error) as Record<string, unknown>;
  const said = oneLine([details, shortMessage].find((text) => typeof text === "string" && text !== "") ?? name);
  // The EntryPoint's codes: AA22 to AA24, the account does not accept the signature or its time; AA3…, the paymaster.
  if (/\bAA2[234]\b/.test(said)) return new Refusal(502, `the bundler refuses the session key (${said}): sign in again`);
  if (/\bAA3\d\b/.test(said)) return new Refusal(502, `the sponsor does not pay (${said}): check its policy and balance`);
  if (/execution reverted/i.test(said)) return refused(call, { reason: "" });
  return new Refusal(502, `the bundler or RPC server fails at ${call.functionName}: ${said}`);
}

function refused(call: Call, revert: Revert, written?: Written): Refusal {
  const fields = { ...written };
  if ("name" in revert) return new Refusal(400, revert.name, fields);
  const reason = revert.reason ? `: ${oneLine(revert.reason)}` : " without a reason";
  return new Refusal(500, `the contract refuses ${call.functionName}${reason}`, fields);
}
