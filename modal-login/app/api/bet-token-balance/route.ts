import { z } from "zod";
import { marketCall } from "@/lib/calls";
import { reader } from "@/lib/chain";
import { orgId, peerId } from "@/lib/inputs";
import { refusalFor } from "@/lib/operations";
import { post } from "@/lib/replies";
import { findUser } from "@/lib/store";

const input = z.object({ orgId, peerId });

/** Returns the balance in the token's smallest unit, as a decimal string: JSON numbers are too small. */
export const POST = post(input, async ({ orgId, peerId }) => {
  await findUser(orgId);
  const call = marketCall("betTokenBalance", [peerId]);
  try {
    const balance = await reader().readContract({ ...call, address: call.to });
    return { result: String(balance) };
  } catch (error) {
    throw refusalFor(error, call);
  }
});
