import { deadlineIn, isExpired } from "@/lib/deferred";
import { peersHere, peersOf } from "@/lib/peers";
import { replying } from "@/lib/replies";
import { readUsers, sessionKey } from "@/lib/store";

export const dynamic = "force-dynamic";

export interface Account {
  orgId: string;
  accountAddress: string;
  /** Unix time in seconds. */
  expiresAt: number;
  expired: boolean;
  /** Those registered; null while the chain cannot be asked. */
  peers: readonly string[] | null;
}

export interface Machine {
  accounts: Account[];
  /** The peer ids of this machine's nodes. */
  peers: string[];
}

/** Who has signed in on this machine, for the page. */
export function GET(request: Request): Promise<Response> {
  return replying(request, async () => {
    const found = await Promise.all((await readUsers()).map(({ orgId }) => accountOf(orgId)));
    const accounts = found.filter((account) => account !== undefined);
    return Response.json({ accounts, peers: await peersHere() } satisfies Machine);
  });
}

async function accountOf(orgId: string): Promise<Account | undefined> {
  const key = await sessionKey(orgId);
  if (!key) return undefined;
  const { accountAddress, deferredActionDigest: digest } = key;
  const peers = await peersOf(accountAddress).catch(() => null);
  return { orgId, accountAddress, expiresAt: deadlineIn(digest) ?? 0, expired: isExpired(digest), peers };
}
