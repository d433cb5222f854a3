import type { Hex } from "viem";

/**
 * Until when a session key holds, in seconds since 1970; undefined if the digest is none. A digest, as account-kit's
 * PermissionBuilder makes it: 1 byte, the nonce (32), a length (4), the validation (21), the deadline (6), the call, ...
 */
export function deadlineIn(digest: Hex): number | undefined {
  const start = 2 + 2 * (1 + 32 + 4 + 21);
  const deadline = digest.slice(start, start + 12);
  return deadline.length === 12 ? Number.parseInt(deadline, 16) : undefined;
}

/** A deadline of 0 is none. */
export function isExpired(digest: Hex): boolean {
  const deadline = deadlineIn(digest) ?? 0;
  return deadline !== 0 && deadline * 1000 <= Date.now();
}
