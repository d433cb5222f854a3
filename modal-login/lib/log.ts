import { briefly } from "./replies";

/** Has errors logged briefly by whoever logs them: account-kit and Next print them whole. */
export function logErrorsBriefly(): void {
  for (const level of ["error", "warn"] as const) {
    const print = console[level];
    console[level] = (...said: unknown[]) => print(...said.map((one) => (one instanceof Error ? briefly(one) : one)));
  }
}
