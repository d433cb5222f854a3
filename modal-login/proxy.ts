import { NextResponse, type NextRequest } from "next/server";
import { settings } from "@/lib/settings";

const LOOPBACK = ["localhost", "127.0.0.1", "[::1]"];
/** The page of Turnkey, which keeps the user's key; account-kit has its address written down. */
const TURNKEY = "https://auth.turnkey.com";

/**
 * Every request passes here first. The app keeps keys and asks for no password, so it answers only to pages of its own
 * and to programs: a browser names the host it believes to talk to (a foreign name that was pointed at this machine is
 * DNS rebinding), and the page a request comes from.
 */
export function proxy(request: NextRequest): NextResponse {
  const refusal = whyNot(request);
  if (refusal) return NextResponse.json({ error: refusal }, { status: 403 });
  const nonce = crypto.randomUUID();
  const policy = contentPolicy(nonce);
  const headers = new Headers(request.headers);
  headers.set("content-security-policy", policy); // Next reads the nonce from it
  const response = NextResponse.next({ request: { headers } });
  response.headers.set("Content-Security-Policy", policy);
  response.headers.set("X-Frame-Options", "DENY");
  response.headers.set("X-Content-Type-Options", "nosniff");
  response.headers.set("Referrer-Policy", "no-referrer");
  response.headers.set("Cross-Origin-Resource-Policy", "same-origin");
  if (request.nextUrl.pathname.startsWith("/api/")) response.headers.set("Cache-Control", "no-store");
  return response;
}

function whyNot(request: NextRequest): string | undefined {
  const host = request.headers.get("host") ?? "";
  const name = host.replace(/:\d+$/, "").toLowerCase();
  if (![...LOOPBACK, ...settings().allowedHosts].includes(name)) {
    return "unknown host: use http://localhost, or set ALLOWED_HOSTS";
  }
  const origin = request.headers.get("origin");
  if (origin !== null && origin !== `http://${host}` && origin !== `https://${host}`) return "request of another page";
  const site = request.headers.get("sec-fetch-site");
  const isApi = request.nextUrl.pathname.startsWith("/api/");
  if (isApi && site !== null && site !== "same-origin" && site !== "none") return "request of another page";
  return undefined;
}

function contentPolicy(nonce: string): string {
  const forDevelopment = process.env.NODE_ENV === "development" ? " 'unsafe-eval'" : "";
  return [
    "default-src 'self'",
    `script-src 'self' 'nonce-${nonce}' 'strict-dynamic'${forDevelopment}`,
    "style-src 'self' 'unsafe-inline'",
    "img-src 'self' data:",
    `connect-src 'self' ${TURNKEY}`,
    `frame-src ${TURNKEY}`,
    "frame-ancestors 'none'",
    "form-action 'self'",
    "base-uri 'none'",
    "object-src 'none'",
  ].join("; ");
}
