import { resolve } from "node:path";
import type { Address } from "viem";
import { z } from "zod";
import { address } from "./inputs";

const url = z
  .string()
  .trim()
  .url()
  .regex(/^https?:\/\//, "no http(s) address")
  .regex(/^[^/]*\/\/[^@/?#]*([/?#]|$)/, "an address with a user name or password cannot be asked")
  .transform((text) => text.replace(/\/+$/, ""));

/** Goes into a header. */
const key = z.string().trim().regex(/^[\x21-\x7e]*$/, "a key has no spaces, line breaks or other such characters");

const environment = z.object({
  ALCHEMY_BASE_URL: url.default("https://api.g.alchemy.com"),
  ALCHEMY_API_KEY: key.default(""),
  PAYMASTER_POLICY_ID: z.string().default(""),
  BUNDLER_URL: url.default("https://gensyn-testnet.g.alchemy.com/v2"),
  RPC_URL: url.optional(),
  CHAIN_ID: z.coerce.number().int().positive().default(685685),
  SMART_CONTRACT_ADDRESS: address.default("0x7745a8FE4b8D2D2c3BB103F8dCae822746F35Da0"),
  PRG_CONTRACT_ADDRESS: address.optional(),
  SESSION_DAYS: z.coerce.number().int().min(1).max(3650).default(62),
  ALLOWED_HOSTS: z.string().default(""),
  DATA_DIR: z.string().default("temp-data"),
  NODE_KEYS: z.string().default(""),
  ALLOW_WITHOUT_TOKEN: z.enum(["0", "1"]).default("0"),
});

export interface Settings {
  alchemyUrl: string;
  /** Sent to Alchemy and the bundler, and to nobody else. */
  apiKey: string;
  policyId: string;
  bundlerUrl: string;
  rpcUrl: string;
  chainId: number;
  coordinator: Address;
  market: Address | undefined;
  sessionDays: number;
  /** Names, beside those of this machine, under which the app may be addressed. */
  allowedHosts: string[];
  dataDir: string;
  /** Files with the keys of nodes, to show their peer ids. */
  nodeKeys: string[];
  /** Programs that reach the app may use it without its token, as the public network's own client does. */
  needsNoToken: boolean;
}

/** Reads the settings from the environment. Throws: a value is none, in one line that names its variable. */
function readSettings(): Settings {
  const given = Object.entries(process.env).filter(([, value]) => value !== undefined && value !== "");
  const parsed = environment.safeParse(Object.fromEntries(given));
  if (!parsed.success) {
    const issue = parsed.error.issues[0];
    throw new Error(`${issue?.path.join(".")}: ${issue?.message.toLowerCase()}; see modal-login/README.md`);
  }
  const read = parsed.data;
  return {
    alchemyUrl: read.ALCHEMY_BASE_URL,
    apiKey: read.ALCHEMY_API_KEY,
    policyId: read.PAYMASTER_POLICY_ID,
    bundlerUrl: read.BUNDLER_URL,
    rpcUrl: read.RPC_URL ?? read.BUNDLER_URL,
    chainId: read.CHAIN_ID,
    coordinator: read.SMART_CONTRACT_ADDRESS,
    market: read.PRG_CONTRACT_ADDRESS,
    sessionDays: read.SESSION_DAYS,
    allowedHosts: list(read.ALLOWED_HOSTS).map((name) => name.toLowerCase().replace(/:\d+$/, "")),
    dataDir: resolve(/*turbopackIgnore: true*/ read.DATA_DIR),
    nodeKeys: list(read.NODE_KEYS),
    needsNoToken: read.ALLOW_WITHOUT_TOKEN === "1",
  };
}

let read: Settings | undefined;

export function settings(): Settings {
  return (read ??= readSettings());
}

function list(text: string): string[] {
  return text
    .split(",")
    .map((part) => part.trim())
    .filter(Boolean);
}
