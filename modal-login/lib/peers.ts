import { createHash, createPublicKey } from "node:crypto";
import { readFile } from "node:fs/promises";
import type { Address } from "viem";
import { reader } from "./chain";
import { coordinatorAbi } from "./contracts";
import { settings } from "./settings";

/** The page waits for it. */
const CHAIN_TIMEOUT_MS = 3000;
const BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";
/** Field numbers, the type, and the length as a varint of two bytes (128 to 16383), as any RSA key has. */
const HEADER_BYTES = 5;

/** The peer ids of this machine's nodes, as far as their key files are there. */
export async function peersHere(): Promise<string[]> {
  const read = settings().nodeKeys.map(async (path) => peerIdOf(await readFile(/*turbopackIgnore: true*/ path)));
  const settled = await Promise.allSettled(read);
  return settled.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
}

/** The peer ids that an account has registered. Throws: the chain cannot be asked in time. */
export async function peersOf(account: Address): Promise<readonly string[]> {
  const [ids] = await reader(CHAIN_TIMEOUT_MS).readContract({
    address: settings().coordinator,
    abi: coordinatorAbi,
    functionName: "getPeerId",
    args: [[account]],
  });
  return ids ?? [];
}

/**
 * The peer id of a node's key file, which is libp2p's `PrivateKey` message: a type, RSA, and the key in PKCS#1 DER. A
 * peer id is the base58 form of the SHA-256 multihash of the `PublicKey` message.
 * https://github.com/libp2p/specs/blob/master/peer-ids/peer-ids.md
 */
function peerIdOf(file: Buffer): string {
  const der = file.subarray(HEADER_BYTES);
  const publicKey = createPublicKey({ key: der, format: "der", type: "pkcs1" }).export({ type: "spki", format: "der" });
  const length = [(publicKey.length & 0x7f) | 0x80, publicKey.length >> 7];
  const message = Buffer.concat([Buffer.from([0x08, 0x00, 0x12, ...length]), publicKey]);
  const digest = createHash("sha256").update(message).digest();
  return base58(Buffer.concat([Buffer.from([0x12, 0x20]), digest]));
}

/** Encodes bytes that do not begin with 0, as multihashes do not. */
function base58(bytes: Buffer): string {
  let number = BigInt(`0x${bytes.toString("hex")}`);
  let text = "";
  for (; number > 0n; number /= 58n) text = BASE58[Number(number % 58n)] + text;
  return text;
}
