import { randomUUID } from "node:crypto";
import { mkdir, open, readFile, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { getAddress, isAddress, type Address, type Hex } from "viem";
import { generatePrivateKey, privateKeyToAddress } from "viem/accounts";
import { z } from "zod";
import { oneAtATime } from "./locks";
import { Refusal } from "./replies";
import { settings } from "./settings";

/** A key that was not activated by then belongs to a sign-in that was given up. */
const UNUSED_KEY_MS = 60 * 60 * 1000;

const users = z.record(
  z.object({ orgId: z.string(), address: z.string(), userId: z.string(), email: z.string().nullish() }).passthrough(),
);
const keys = z.record(
  z.array(
    z
      .object({
        publicKey: z.string(),
        privateKey: z.string(),
        createdAt: z.string(),
        activated: z.boolean().default(false),
        accountAddress: z.string().optional(),
        initCode: z.string().optional(),
        deferredActionDigest: z.string().optional(),
      })
      .passthrough(),
  ),
);

export type User = z.infer<typeof users>[string];
type StoredKey = z.infer<typeof keys>[string][number];

/** A key that the user has given power over the smart account. */
export interface SessionKey {
  privateKey: Hex;
  accountAddress: Address;
  initCode: Hex;
  deferredActionDigest: Hex;
}

export async function readUsers(): Promise<User[]> {
  return Object.values(await read("userData.json", users));
}

/** Throws Refusal 404. */
export async function findUser(orgId: string): Promise<User> {
  const found = (await readUsers()).find((user) => user.orgId === orgId);
  if (!found) throw new Refusal(404, "user not found");
  return found;
}

/** The newest activated key of a user, undefined if there is none. */
export async function sessionKey(orgId: string): Promise<SessionKey | undefined> {
  const all = (await read("userApiKey.json", keys))[orgId] ?? [];
  for (const { activated, privateKey, accountAddress, initCode, deferredActionDigest } of all.toReversed()) {
    if (!activated || !isAddress(accountAddress ?? "", { strict: false }) || !deferredActionDigest) continue;
    if (!/^0x[0-9a-fA-F]{64}$/.test(privateKey)) continue; // of an earlier app, with keys of another kind
    return {
      privateKey: privateKey as Hex,
      accountAddress: getAddress(accountAddress!.toLowerCase()),
      initCode: (initCode ?? "0x") as Hex,
      deferredActionDigest: deferredActionDigest as Hex,
    };
  }
  return undefined;
}

/** A new key pair for a user who has proved who they are. Returns its address; the private key stays in the file. */
export async function addKey(user: User): Promise<Address> {
  const privateKey = generatePrivateKey();
  const publicKey = privateKeyToAddress(privateKey);
  const now = Date.now();
  await change("userData.json", users, (all) => ({ ...all, [user.orgId]: user }));
  await change("userApiKey.json", keys, (all) => {
    const kept = (all[user.orgId] ?? []).filter((key) => key.activated || now - Date.parse(key.createdAt) < UNUSED_KEY_MS);
    const added: StoredKey = { publicKey, privateKey, createdAt: new Date(now).toISOString(), activated: false };
    return { ...all, [user.orgId]: [...kept, added] };
  });
  return publicKey;
}

/** Throws Refusal 404: there is no such key. */
export async function activateKey(
  orgId: string,
  publicKey: Address,
  done: { accountAddress: Address; initCode: Hex; deferredActionDigest: Hex },
): Promise<void> {
  await change("userApiKey.json", keys, (all) => {
    const list = all[orgId] ?? [];
    const found = list.find((key) => key.publicKey.toLowerCase() === publicKey.toLowerCase());
    if (!found) throw new Refusal(404, "api key not found: sign in again");
    // Last in the list: nodes take the last activated one.
    const others = list.filter((key) => key !== found);
    return { ...all, [orgId]: [...others, { ...found, activated: true, ...done }] };
  });
}

/** Throws Refusal 500: the file is damaged. It is then left as it is, since it may hold the only copy of a key. */
async function read<S extends z.ZodTypeAny>(name: string, schema: S): Promise<z.output<S>> {
  const path = join(/*turbopackIgnore: true*/ settings().dataDir, name);
  let text: string;
  try {
    text = await readFile(/*turbopackIgnore: true*/ path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return {};
    throw new Refusal(500, `cannot read ${name}: check its rights`);
  }
  try {
    return schema.parse(JSON.parse(text));
  } catch {
    throw new Refusal(500, `${name} is damaged: move it away and sign in again`);
  }
}

async function change<S extends z.ZodTypeAny>(
  name: string,
  schema: S,
  make: (before: z.output<S>) => z.output<S>,
): Promise<void> {
  await oneAtATime(`file ${name}`, async () => {
    const after = make(await read(name, schema));
    await replaceFile(name, JSON.stringify(after, null, 2));
  });
}

/** At any time there is the old content or the new one, for the owner's eyes only. */
async function replaceFile(name: string, text: string): Promise<void> {
  const folder = settings().dataDir;
  const temporary = join(/*turbopackIgnore: true*/ folder, `.${name}.${randomUUID()}`);
  try {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    const file = await open(/*turbopackIgnore: true*/ temporary, "wx", 0o600);
    try {
      await file.writeFile(text);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(temporary, join(/*turbopackIgnore: true*/ folder, name));
  } catch (error) {
    await rm(temporary, { force: true }).catch(() => undefined);
    throw new Refusal(500, `cannot write ${name} (${(error as NodeJS.ErrnoException).code}): check DATA_DIR and the disk`);
  }
}
