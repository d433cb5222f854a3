// Starts the built app. HOST and PORT say where (127.0.0.1, 3000); other settings are in README.md.
import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const root = import.meta.dirname;
const file = resolve(root, process.env.SIGN_IN_ENV_FILE || "sign-in.env");
if (existsSync(file)) {
  process.loadEnvFile(file); // what the environment already says wins
} else if (process.env.SIGN_IN_ENV_FILE) {
  fail(`SIGN_IN_ENV_FILE names ${file}, which does not exist`);
}

const server = [join(root, ".next", "standalone", "server.js"), join(root, "server.js")].find((path) => existsSync(path));
if (!server) {
  fail("the app is not built: run npm ci --ignore-scripts && npm run build");
}
process.env.NEXT_TELEMETRY_DISABLED = "1";
process.env.DATA_DIR = resolve(root, process.env.DATA_DIR || "temp-data");
process.env.NODE_KEYS = (process.env.NODE_KEYS ?? "../swarm.pem")
  .split(",")
  .filter(Boolean)
  .map((path) => resolve(root, path))
  .join(",");
process.env.PORT ||= "3000";
// The server listens where HOSTNAME says. Shells and containers set that to the machine's name, which would open it.
process.env.HOSTNAME = process.env.HOST || "127.0.0.1";
console.log(`sign in at http://localhost:${process.env.PORT}`);
await import(pathToFileURL(server).href);

function fail(message) {
  console.error(`error: ${message}`);
  process.exit(1);
}
