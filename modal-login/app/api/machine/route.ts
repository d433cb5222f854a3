import { deadlineIn, isExpired } from "@/lib/deferred";
import { peersHere, peersOf } from "@/lib/peers";
import { replying } from "@/lib/replies";
import { readUsers, sessionKey } from "@/lib/store";

export const dynamic = "force-dynamic";

export interface Machine {
  accounts: { orgId: string; accountAddress: string; expiresAt: number; expired: boolean; peers: string[] | null }[];
  /** The peer ids of this machine's nodes. */
  peers: string[];
}

/** Who has signed in on this machine, for the page. `peers` of an account is null while the chain cannot be asked. */
export function GET(request: Request): Promise<Response> {
  return replying(request, async () => {
    const accounts: Machine["accounts"] = [];
    for (const { orgId } of await readUsers()) {
      const key = await sessionKey(orgId);
      if (!key) continue;
      const { accountAddress, deferredActionDigest: digest } = key;
      const peers = await peersOf(accountAddress).catch(() => null);
      const expiresAt = deadlineIn(digest) ?? 0;
      accounts.push({ orgId, accountAddress, expiresAt, expired: isExpired(digest), peers: peers && [...peers] });
    }
    return Response.json({ accounts, peers: await peersHere() } satisfies Machine);
  });
}
