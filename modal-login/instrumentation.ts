/** Runs once when the server starts. */
export async function register(): Promise<void> {
  if (process.env.NEXT_RUNTIME === "nodejs") {
    (await import("@/lib/log")).logErrorsBriefly();
    (await import("@/lib/check-settings")).checkSettings();
  }
}
