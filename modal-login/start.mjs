// Starts the built app. CODEZERO_SIGN_IN_HOST and PORT say where (127.0.0.1, 3000); other settings are in README.md.
//
//   node start.mjs            prints, on a terminal, the address that lets a browser in
//   node start.mjs address    prints another one of the running app
import { createHmac, randomBytes } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const root = import.meta.dirname;
const file = resolve(root, process.env.SIGN_IN_ENV_FILE || "sign-in.env");
if (existsSync(file)) {
  process.loadEnvFile(file); // what the environment already says wins
} else if (process.env.SIGN_IN_ENV_FILE) {
  fail(`SIGN_IN_ENV_FILE names ${file}, which does not exist`);
}

process.env.DATA_DIR = resolve(root, process.env.DATA_DIR || "temp-data");
process.env.PORT ||= process.env.CODEZERO_SIGN_IN_PORT || "3000";
if (!/^[1-9]\d{0,4}$/.test(process.env.PORT) || process.env.PORT > 65535) {
  fail(`PORT: ${process.env.PORT} is no port from 1 to 65535`); // Next would listen on 3000
}
const host = process.env.CODEZERO_SIGN_IN_HOST || "127.0.0.1"; // some shells and compilers set HOST
const bracketed = host.includes(":") ? `[${host}]` : host;
const isHere = ["127.0.0.1", "0.0.0.0", "::"].includes(host);
// A browser keeps passkeys for names. The token goes to the number: the name may be ::1, where other users can listen.
const place = `http://${isHere ? "localhost" : bracketed}:${process.env.PORT}`;
const api = `http://${isHere ? "127.0.0.1" : bracketed}:${process.env.PORT}`;
if (process.argv[2] === "address") {
  console.log(await address());
  process.exit();
}

const server = [join(root, ".next", "standalone", "server.js"), join(root, "server.js")].find((path) => existsSync(path));
if (!server) {
  fail("the app is not built: run npm ci --ignore-scripts && npm run build");
}
process.env.NEXT_TELEMETRY_DISABLED = "1";
process.env.NODE_KEYS = (process.env.NODE_KEYS ?? "../swarm.pem")
  .split(",")
  .map((path) => path.trim())
  .filter(Boolean)
  .map((path) => resolve(root, path))
  .join(",");
// The server listens where HOSTNAME says. Shells and containers set that to the machine's name, which would open it.
process.env.HOSTNAME = host;
await import(pathToFileURL(server).href);
// Not where it may be a log: whoever has the address first is let in.
if (process.stdout.isTTY) {
  while (!(await fetch(`${api}/api/health`).catch(() => undefined))) await new Promise((resolve) => setTimeout(resolve, 100));
  console.log(`sign in at ${await address()}`);
} else {
  console.log(`sign in at ${place}, with a ticket: node start.mjs address`);
}

/** Returns the app's address with a ticket, which works once. */
async function address() {
  const file = join(process.env.DATA_DIR, "token");
  if (!existsSync(file)) fail(`there is no ${file}: start the app first, or set DATA_DIR to that of the running one`);
  const token = readFileSync(file, "utf8").trim();
  if (!(await hasToken(token))) fail(`no app of this folder answers at ${api}`);
  const asked = { method: "POST", headers: { authorization: `Bearer ${token}` } };
  const reply = await fetch(`${api}/api/ticket`, asked).catch(() => undefined);
  if (!reply?.ok) fail(`no app of this folder answers at ${api}`);
  return `${place}/?ticket=${(await reply.json()).ticket}`;
}

/** Returns true if the app that answers has the token: another user may be listening. As `proof` in lib/access.ts. */
async function hasToken(token) {
  const nonce = randomBytes(32).toString("base64url");
  const signal = AbortSignal.timeout(10_000);
  const health = await fetch(`${api}/api/health?nonce=${nonce}`, { signal }).then((reply) => reply.json()).catch(() => undefined);
  return health?.proof === createHmac("sha256", token).update(`health ${process.env.PORT} ${nonce}`).digest("base64url");
}

function fail(message) {
  console.error(`error: ${message}`);
  process.exit(1);
}
