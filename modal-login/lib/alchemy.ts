import { z } from "zod";
import { boundedText } from "./bodies";
import { postJson } from "./chain";
import { Refusal } from "./replies";
import { settings } from "./settings";
import type { stampedRequest } from "./inputs";
import type { User } from "./store";

const PROBE_TIMEOUT_MS = 3000;
const TIMEOUT_MS = 15_000;
export const MAX_REPLY_BYTES = 1 << 20;
const PUBLIC_ALCHEMY = "https://api.g.alchemy.com";

const whoamiReply = z.object({
  orgId: z.string().regex(/^[\x21-\x7e]{1,200}$/),
  userId: z.string().max(200),
  address: z.string().max(200),
  email: z.string().max(320).optional().catch(undefined),
});

let probe: Promise<string> | undefined;

/**
 * "reachable", or "unreachable: " and why, within 3 s. Those who ask meanwhile share the answer: every user of the machine
 * may ask.
 */
export function reachability(): Promise<string> {
  return (probe ??= probed().finally(() => (probe = undefined)));
}

async function probed(): Promise<string> {
  const { alchemyUrl, apiKey } = settings();
  if (!apiKey && alchemyUrl === PUBLIC_ALCHEMY) return "unreachable: ALCHEMY_API_KEY is not set, see modal-login/README.md";
  let response: Response;
  try {
    response = await postJson(`${alchemyUrl}/signer/v1/signer-config`, "{}", PROBE_TIMEOUT_MS);
  } catch (error) {
    return `unreachable: ${reason(error)}`;
  }
  const { status, headers } = response;
  if (status === 401 || status === 403) return `unreachable: it refuses ALCHEMY_API_KEY (HTTP ${status})`;
  if (status === 404 || status >= 500) return `unreachable: it answers with HTTP ${status}`;
  const isJson = headers.get("content-type")?.includes("json");
  return isJson ? "reachable" : "unreachable: something else answers in its place, is ALCHEMY_BASE_URL right?";
}

/** Who has stamped a request, by Alchemy's word. Throws Refusal 401: nobody; 502: Alchemy cannot be asked. */
export async function whoami(stamp: z.output<typeof stampedRequest>): Promise<User> {
  const { status, text } = await forward("whoami", JSON.stringify({ stampedRequest: stamp }));
  if (status >= 500 || status === 429) throw new Refusal(502, `Alchemy answers whoami with HTTP ${status}: try again later`);
  if (status !== 200) throw new Refusal(401, `Alchemy does not accept the stamp (HTTP ${status}): sign in again`);
  try {
    const { orgId, userId, address, email } = whoamiReply.parse(JSON.parse(text));
    return { orgId, address, userId, ...(email !== undefined && { email }) };
  } catch {
    throw new Refusal(502, "Alchemy's answer to whoami is of another form: is ALCHEMY_BASE_URL right?");
  }
}

/** A request of the page's signer, with the key that the browser does not get. Throws Refusal 502. */
export async function forward(route: string, body: string): Promise<{ status: number; text: string }> {
  try {
    const response = await postJson(`${settings().alchemyUrl}/signer/v1/${route}`, body, TIMEOUT_MS);
    return { status: response.status, text: await boundedText(response, MAX_REPLY_BYTES) };
  } catch (error) {
    throw new Refusal(502, `Alchemy cannot be reached: ${reason(error)}`);
  }
}

/** Says in words what went wrong, without the address. */
export function reason(error: unknown): string {
  if (!(error instanceof Error)) return "unknown error";
  if (error.name === "TimeoutError") return "it gives no answer in time";
  const { code } = Object(error.cause) as { code?: unknown };
  return typeof code === "string" ? code : error.message === "fetch failed" ? "no connection" : error.message;
}
