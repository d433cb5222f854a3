import { ensureToken } from "./access";
import { briefly } from "./replies";
import { settings } from "./settings";

/** Has errors logged briefly by whoever logs them: account-kit and Next print them whole. */
export function logErrorsBriefly(): void {
  for (const level of ["error", "warn"] as const) {
    const print = console[level];
    console[level] = (...said: unknown[]) => print(...said.map((one) => (one instanceof Error ? briefly(one) : one)));
  }
}

/** Wrong settings, or a folder that cannot be written, end the server at its start, not in a user's first request. */
export function checkSettings(): void {
  try {
    settings();
    ensureToken();
  } catch (error) {
    console.error(`error: ${error instanceof Error ? error.message : String(error)}`);
    process.exit(1);
  }
}
