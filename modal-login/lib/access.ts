import { createHash, createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import { chmodSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { settings } from "./settings";

/** The time that a person has to open the address that was printed. */
const TICKET_MS = 60 * 60 * 1000;

/**
 * The app answers to the user who started it: to nodes, which read the token from a file that only this user can read,
 * and to a browser that opened an address with a ticket. A ticket works once, and gives the browser a cookie.
 */
export function ensureToken(): void {
  mkdirSync(tickets(), { recursive: true, mode: 0o700 });
  chmodSync(tickets(), 0o700);
  for (const name of readdirSync(tickets())) if (isOver(name)) rmSync(join(tickets(), name), { force: true });
  if (token()) return;
  const whole = `${tokenFile()}.${process.pid}`; // renamed when it is whole: a full disk must not leave an empty token
  try {
    writeFileSync(whole, newSecret(), { mode: 0o600 });
    renameSync(whole, tokenFile());
  } finally {
    rmSync(whole, { force: true });
  }
}

/**
 * Shows a program that has the token that this app has it too, and tells nobody the token. The port is part of it, so that
 * who listens on another one cannot have this app answer.
 */
export function proof(nonce: string): string {
  if (!token()) ensureToken();
  return createHmac("sha256", token()).update(`health ${process.env.PORT} ${nonce}`).digest("base64url");
}

/** Makes a ticket for the address that a person is to open. */
export function newTicket(): string {
  const ticket = newSecret();
  mkdirSync(tickets(), { recursive: true, mode: 0o700 });
  writeFileSync(join(tickets(), nameOf(ticket)), "", { flag: "wx", mode: 0o600 });
  return ticket;
}

/** Returns the cookie's value for a ticket that was not used before; undefined for all else. */
export function redeemed(ticket: string): string | undefined {
  const name = nameOf(ticket);
  if (isOver(name)) return undefined;
  try {
    rmSync(join(tickets(), name)); // of two that try it at once, one succeeds
  } catch {
    return undefined;
  }
  return cookieFor(token());
}

/** Returns true if a request has the node's token, or a browser's cookie where that is enough. */
export function isKnown(authorization: string | null, cookie: string | undefined): boolean {
  const own = token();
  if (!own) {
    ensureToken(); // its folder was deleted while the app ran: nodes read the new one, and learn that nobody has signed in
    return false;
  }
  return same(authorization ?? "", `Bearer ${own}`) || same(cookie ?? "", cookieFor(own));
}

function isOver(name: string): boolean {
  try {
    return Date.now() - statSync(join(tickets(), name)).mtimeMs > TICKET_MS;
  } catch {
    return true;
  }
}

/** Returns a cookie made from the token and not the token itself: a browser shows its cookies to every port of localhost. */
function cookieFor(own: string): string {
  return createHmac("sha256", own).update("browser").digest("base64url");
}

function token(): string {
  try {
    return readFileSync(/*turbopackIgnore: true*/ tokenFile(), "utf8").trim();
  } catch {
    return "";
  }
}

/** Their hashes, so that comparing takes the same time for all. */
function same(one: string, other: string): boolean {
  return timingSafeEqual(hash(one), hash(other));
}

/** A ticket is found by its hash, so that a guess learns nothing from how long the search took. */
function nameOf(ticket: string): string {
  return hash(ticket).toString("hex");
}

function hash(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}

function newSecret(): string {
  return randomBytes(32).toString("base64url");
}

function tokenFile(): string {
  return join(/*turbopackIgnore: true*/ settings().dataDir, "token");
}

function tickets(): string {
  return join(/*turbopackIgnore: true*/ settings().dataDir, "tickets");
}
