import { isExpired } from "@/lib/deferred";
import { orgId } from "@/lib/inputs";
import { replying, validated } from "@/lib/replies";
import { findUser, sessionKey } from "@/lib/store";
import { z } from "zod";

const input = z.object({ orgId });

/** Plain text, as scripts compare it. An expired key counts as not activated: the user has to sign in again. */
export function GET(request: Request): Promise<Response> {
  return replying(request, async () => {
    const query = Object.fromEntries(new URL(request.url).searchParams);
    const user = await findUser(validated(query, input).orgId);
    const key = await sessionKey(user.orgId);
    return new Response(key && !isExpired(key.deferredActionDigest) ? "activated" : "not activated");
  });
}
