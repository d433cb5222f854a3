/** Runs once when the server starts. */
export async function register(): Promise<void> {
  if (process.env.NEXT_RUNTIME === "nodejs") {
    const { checkSettings, logErrorsBriefly } = await import("@/lib/startup");
    logErrorsBriefly();
    checkSettings();
  }
}
