import { NextResponse, type NextRequest } from "next/server";
import { isKnown, redeemed } from "@/lib/access";
import { settings } from "@/lib/settings";

const LOOPBACK_ADDRESSES = ["127.0.0.1", "[::1]"];
const LOOPBACK = ["localhost", ...LOOPBACK_ADDRESSES];
/** The path that needs no token: it tells no secret, and launchers ask it before they know whose app answers. */
const OPEN_PATH = "/api/health";
/** What the page asks. Browsers send a cookie to all ports of a host, so it is good for nothing that writes to the chain. */
const PAGE_API = /^\/api\/(alchemy\/.+|get-api-key|machine|rpc|set-api-key-activated)$/;
const NO_TOKEN = "only for the user of this app: send the token in temp-data/token";
/** The page of Turnkey, which keeps the user's key; account-kit has its address written down. */
const TURNKEY = "https://auth.turnkey.com";

/**
 * Every request passes here first. The app keeps keys, so it answers only to its user (lib/access.ts), and of a browser
 * only to pages of its own: a browser names the host it believes to talk to (a foreign name that was pointed at this
 * machine is DNS rebinding), and the page a request comes from.
 */
export function proxy(request: NextRequest): NextResponse {
  const refusal = whyNot(request);
  if (refusal) return NextResponse.json({ error: refusal }, { status: 403 });
  const { pathname, searchParams } = request.nextUrl;
  const isPage = pathname === "/";
  const isApi = pathname.startsWith("/api/");
  const { name, port } = hostOf(request);
  const ticket = searchParams.get("ticket");
  if (isPage && LOOPBACK_ADDRESSES.includes(name)) return toTheName(port, ticket);
  const cookieName = `codezero-sign-in${port.replace(":", "-")}`; // so that two apps of one host have each their own
  const given = isPage && ticket ? redeemed(ticket) : undefined;
  if (given) {
    const scheme = request.headers.get("x-forwarded-proto")?.startsWith("https") ? "https" : "http";
    const headers = { Location: `${scheme}://${name}${port}/`, "Referrer-Policy": "no-referrer", "Cache-Control": "no-store" };
    const response = new NextResponse(null, { status: 303, headers });
    response.cookies.set(cookieName, given, { httpOnly: true, sameSite: "lax", maxAge: 400 * 86_400 });
    return response;
  }
  const isOfPage = !isApi || PAGE_API.test(pathname);
  const cookie = isOfPage ? request.cookies.get(cookieName)?.value : undefined;
  if (pathname !== OPEN_PATH && !isOpenTo(request) && !isKnown(request.headers.get("authorization"), cookie)) {
    return isPage ? howToGetIn(ticket !== null) : NextResponse.json({ error: NO_TOKEN }, { status: 403 });
  }
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
  if (isApi) response.headers.set("Cache-Control", "no-store");
  return response;
}

function hostOf(request: NextRequest): { name: string; port: string } {
  const host = request.headers.get("host") ?? "";
  const port = /:\d+$/.exec(host)?.[0] ?? "";
  return { name: host.slice(0, host.length - port.length).toLowerCase(), port };
}

/**
 * Sends a browser from 127.0.0.1 to localhost, since it keeps passkeys for names only. It does so by a page: Next treats
 * the two as equal, and would make a Location that leads back to 127.0.0.1.
 */
function toTheName(port: string, ticket: string | null): NextResponse {
  const search = ticket && /^[\w-]+$/.test(ticket) ? `?ticket=${ticket}` : "";
  const page = `<!doctype html><meta http-equiv="refresh" content="0;url=http://localhost${port}/${search}">`;
  const headers = { "Content-Type": "text/html", "Referrer-Policy": "no-referrer", "Cache-Control": "no-store" };
  return new NextResponse(page, { headers });
}

function howToGetIn(wasUsed: boolean): NextResponse {
  const text = [
    wasUsed ? "This address was used before, or is too old." : "This page opens by an address with a ticket.",
    "Open the one that was printed when the app was started, or have another one printed, in its folder:",
    "    node start.mjs address",
  ].join("\n\n");
  const headers = { "Content-Type": "text/plain; charset=utf-8", "Cache-Control": "no-store" };
  return new NextResponse(`${text}\n`, { status: 403, headers });
}

/** Returns true if a request needs no token: one of a program, not of a page, where the settings say so. */
function isOpenTo(request: NextRequest): boolean {
  const { headers, nextUrl } = request;
  const ofPage = headers.has("origin") || headers.has("sec-fetch-site");
  return settings().needsNoToken && nextUrl.pathname.startsWith("/api/") && !ofPage;
}

function whyNot(request: NextRequest): string | undefined {
  const host = request.headers.get("host") ?? "";
  const { name } = hostOf(request);
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
