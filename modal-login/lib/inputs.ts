import { z } from "zod";
import { getAddress, isAddress, type Hex } from "viem";

const MAX_UINT256 = 2n ** 256n - 1n;
const MAX_INT256 = 2n ** 255n - 1n;

/** A whole number: a JSON number while that is exact, beyond it a decimal string. */
function whole(min: bigint, max: bigint) {
  return z
    .union([z.number(), z.string()], { errorMap: () => ({ message: "a whole number, or a decimal string" }) })
    .transform((given, context) => {
      if (typeof given === "number" ? Number.isSafeInteger(given) : /^-?\d{1,78}$/.test(given)) {
        const value = BigInt(given);
        if (value >= min && value <= max) return value;
      }
      const hint = typeof given === "number" && Number.isInteger(given) ? "; large ones as a decimal string" : "";
      context.addIssue({ code: "custom", message: `no whole number in range${hint}` });
      return z.NEVER;
    });
}

export const uint = whole(0n, MAX_UINT256);
export const int = whole(-MAX_INT256 - 1n, MAX_INT256);
export const orgId = z.string().regex(/^[\x21-\x7e]{1,200}$/, "1 to 200 printable characters");
export const peerId = z.string().regex(/^[\x21-\x7e]{1,128}$/, "1 to 128 printable characters");
export const winners = z.array(peerId).max(256);
export const address = z
  .string()
  .refine((text) => isAddress(text, { strict: false }), "no address")
  .transform((text) => getAddress(text));
export const hex = z
  .string()
  .regex(/^0x([0-9a-fA-F]{2}){0,16384}$/, "no hexadecimal bytes")
  .transform((text) => text as Hex);
/** A request to Alchemy's whoami that the user's signer has stamped. Where it would go is not read: only Alchemy is asked. */
export const stampedRequest = z.object({
  url: z.string().max(2000),
  body: z.string().max(10_000),
  stamp: z.object({ stampHeaderName: z.string().max(200), stampHeaderValue: z.string().max(10_000) }),
});
