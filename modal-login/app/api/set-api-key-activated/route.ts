import { z } from "zod";
import { isExpired } from "@/lib/deferred";
import { address, hex, orgId } from "@/lib/inputs";
import { post, Refusal } from "@/lib/replies";
import { activateKey, findUser } from "@/lib/store";

const input = z.object({ orgId, apiKey: address, accountAddress: address, initCode: hex, deferredActionDigest: hex });

/** Takes note that the user has signed the deferred action that gives a key power over the account. */
export const POST = post(input, async ({ orgId, apiKey, ...done }) => {
  await findUser(orgId);
  const installed = done.deferredActionDigest.toLowerCase().includes(apiKey.slice(2).toLowerCase());
  if (!installed) throw new Refusal(400, "bad request: deferredActionDigest: does not install apiKey");
  if (isExpired(done.deferredActionDigest)) throw new Refusal(400, "bad request: deferredActionDigest: has expired");
  await activateKey(orgId, apiKey, done);
  return { activated: true };
});
