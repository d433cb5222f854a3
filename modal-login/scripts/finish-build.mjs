// `next build` leaves the files for browsers out of its standalone folder; the server there looks for them beside itself.
import { cpSync } from "node:fs";
import { join } from "node:path";

const root = join(import.meta.dirname, "..");
cpSync(join(root, ".next", "static"), join(root, ".next", "standalone", ".next", "static"), { recursive: true });
