import { z } from "zod";
import { MAX_REPLY_BYTES, reason } from "@/lib/alchemy";
import { boundedText } from "@/lib/bodies";
import { postJson } from "@/lib/chain";
import { post, Refusal } from "@/lib/replies";
import { settings } from "@/lib/settings";

const TIMEOUT_MS = 10_000;
/** What the page needs to find the account and to sign for it. It sends no operation: the sponsor would pay for it. */
const METHODS = ["eth_chainId", "eth_call", "eth_getCode", "eth_getStorageAt", "eth_blockNumber"] as const;

const one = z.object({
  jsonrpc: z.literal("2.0"),
  id: z.union([z.number(), z.string()]),
  method: z.enum(METHODS),
  params: z.array(z.unknown()).max(4).optional(),
});

/** The chain's RPC server, which may need a key, for the page. */
export const POST = post(one, async (request) => {
  const { rpcUrl } = settings();
  try {
    const response = await postJson(rpcUrl, JSON.stringify(request), TIMEOUT_MS);
    const reply = Object(JSON.parse(await boundedText(response, MAX_REPLY_BYTES))) as object;
    if ("result" in reply || "error" in reply) return reply;
    throw new Refusal(502, `the RPC server answers with HTTP ${response.status}`);
  } catch (error) {
    if (error instanceof Refusal) throw error;
    throw new Refusal(502, `the RPC server cannot be reached: ${error instanceof SyntaxError ? "no JSON" : reason(error)}`);
  }
});
