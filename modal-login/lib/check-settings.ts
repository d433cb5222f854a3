import { ensureToken } from "./access";
import { settings } from "./settings";

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
