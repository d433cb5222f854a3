import { decodeErrorResult, isHex, type Abi, type Hex } from "viem";

const MAX_DEPTH = 8;

/** A contract's refusal: the name of its error, or its reason in words where it has no name. */
export type Revert = { name: string } | { reason: string };

/**
 * The refusal in what a bundler answered, undefined if there is none. A bundler that answers with HTTP 200 makes viem
 * throw an RpcRequestError with the revert's bytes in `data`; one that answers with another status makes it throw an
 * HttpRequestError with the reply as text in `details`. Either may be wrapped in other errors.
 */
export function revertIn(error: unknown, abi: Abi): Revert | undefined {
  for (const data of bytesIn(error, MAX_DEPTH)) {
    const found = decodeRevert(data, abi);
    if (found) return found;
  }
  return undefined;
}

export function decodeRevert(data: Hex, abi: Abi): Revert | undefined {
  try {
    const { errorName, args } = decodeErrorResult({ abi, data });
    if (errorName === "Error") return { reason: String(args?.[0] ?? "").slice(0, 200) };
    if (errorName === "Panic") return { reason: `Panic(0x${BigInt(args?.[0] as bigint).toString(16)})` };
    return { name: errorName };
  } catch {
    return undefined; // another contract's error, or no error at all
  }
}

/** All that could be a revert's bytes, the outermost first. */
function* bytesIn(value: unknown, depth: number): Generator<Hex> {
  if (depth === 0 || value === null || value === undefined) return;
  if (typeof value === "string") {
    if (isHex(value) && value.length >= 10) yield value;
    else if (value.startsWith("{")) yield* bytesIn(parsed(value), depth - 1);
    return;
  }
  if (typeof value !== "object") return;
  const fields = value as Record<string, unknown>;
  for (const name of ["revertData", "data", "error", "details", "cause"]) yield* bytesIn(fields[name], depth - 1);
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
