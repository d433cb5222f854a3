// A headless Chromium that reaches nothing but the app: Turnkey's page, which keeps the user's key, is a stand-in.
import { generateKeyPairSync } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { delimiter, join } from "node:path";
import { chromium } from "playwright-core";

const SCREENSHOTS = join(import.meta.dirname, "..", "screenshots");
const NAMES = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
const MAC = "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome";
export const DESKTOP = { width: 1280, height: 800 };
export const PHONE = { width: 390, height: 844 };

/** It speaks the protocol of @turnkey/iframe-stamper over the MessageChannel it is given. */
const TURNKEY = `<script>
addEventListener("message", (event) => {
  if (event.data?.type !== "TURNKEY_INIT_MESSAGE_CHANNEL") return;
  const port = event.ports[0];
  const answers = {
    INJECT_CREDENTIAL_BUNDLE: () => ["BUNDLE_INJECTED", true],
    STAMP_REQUEST: () => ["STAMP", btoa(JSON.stringify({ publicKey: "02ab", scheme: "x", signature: "00" }))],
    GET_EMBEDDED_PUBLIC_KEY: () => ["PUBLIC_KEY_READY", "04ab"],
    INIT_EMBEDDED_KEY: () => ["PUBLIC_KEY_READY", "04ab"],
    CLEAR_EMBEDDED_KEY: () => ["EMBEDDED_KEY_CLEARED", true],
    RESET_EMBEDDED_KEY: () => ["PUBLIC_KEY_READY", "04ab"],
  };
  port.onmessage = ({ data: { type, requestId } }) => {
    const [name, value] = (answers[type] ?? (() => ["ERROR", "not here: " + type]))();
    port.postMessage({ type: name, value, requestId });
  };
  port.postMessage({ type: "PUBLIC_KEY_READY", value: "04ab" });
});
</script>`;

/** Returns the path of Chromium. Throws: there is none. */
export function executable() {
  const inPath = (process.env.PATH ?? "").split(delimiter).flatMap((folder) => NAMES.map((name) => join(folder, name)));
  const found = [process.env.CHROMIUM, ...inPath, MAC].find((path) => path && existsSync(path));
  if (!found) throw new Error("no Chromium: install it (apt-get install chromium), or name it in CHROMIUM");
  return found;
}

export class Browser {
  static async launch() {
    const root = process.getuid?.() === 0;
    const args = ["--disable-gpu", "--disable-background-networking", "--disable-component-update", "--no-first-run"];
    const browser = new Browser();
    browser.chromium = await chromium.launch({
      executablePath: executable(),
      args: root ? [...args, "--no-sandbox"] : args,
    });
    return browser;
  }

  /** A new visitor, without storage. `dark` and `viewport` are as the visitor's device has them. */
  async visit(url, { dark = false, viewport = DESKTOP, turnkey = true } = {}) {
    const context = await this.chromium.newContext({ viewport, colorScheme: dark ? "dark" : "light" });
    const visit = { context, page: await context.newPage(), foreign: [], errors: [], received: [] };
    await context.route("**/*", (route) => {
      const asked = route.request().url();
      if (asked.startsWith("https://auth.turnkey.com/")) {
        return turnkey ? route.fulfill({ contentType: "text/html", body: TURNKEY }) : route.abort();
      }
      if (/^(http:\/\/(localhost|127\.0\.0\.1):|data:|blob:)/.test(asked)) return route.continue();
      visit.foreign.push(asked);
      return route.abort();
    });
    visit.page.on("pageerror", (error) => visit.errors.push(error.message));
    visit.page.on("response", (response) => {
      if (response.url().startsWith(url)) visit.received.push(response.text().catch(() => ""));
    });
    return visit;
  }

  close() {
    return this.chromium.close();
  }
}

/** An authenticator that holds a passkey for localhost, and whose user always agrees. */
export async function addPasskey({ context, page }) {
  const session = await context.newCDPSession(page);
  await session.send("WebAuthn.enable");
  const options = { protocol: "ctap2", transport: "internal", hasResidentKey: true, hasUserVerification: true };
  const { authenticatorId } = await session.send("WebAuthn.addVirtualAuthenticator", {
    options: { ...options, isUserVerified: true, automaticPresenceSimulation: true },
  });
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const credential = {
    credentialId: Buffer.from("passkey-1").toString("base64"),
    isResidentCredential: true,
    rpId: "localhost",
    privateKey: privateKey.export({ type: "pkcs8", format: "der" }).toString("base64"),
    userHandle: Buffer.from("user-1").toString("base64"),
    signCount: 1,
  };
  await session.send("WebAuthn.addCredential", { authenticatorId, credential });
}

export async function screenshot(page, name) {
  await mkdir(SCREENSHOTS, { recursive: true });
  await page.screenshot({ path: join(SCREENSHOTS, `${name}.png`) });
}
