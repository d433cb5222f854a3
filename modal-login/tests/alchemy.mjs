// A stand-in of Alchemy's signer service: it knows one user, who gets in with any code.
import { createServer } from "node:http";
import { privateKeyToAccount } from "viem/accounts";

export const ORG_ID = "7f1d2c9a-0000-4000-8000-000000000001";
export const API_KEY = "test-api-key";
/** The user's own key, which the real Turnkey keeps. */
export const signer = privateKeyToAccount(`0x${"5".repeat(64)}`);
const USER = { orgId: ORG_ID, userId: "user-1", address: signer.address, email: "anna@example.org" };

/** `mode`: ok; an HTTP status, for every answer; or "hangs". `asked` has the routes. */
export class Alchemy {
  mode = "ok";
  asked = [];

  async listen(port = 0) {
    this.server = createServer((request, response) => void this.serve(request, response));
    await new Promise((resolve) => this.server.listen(port, "127.0.0.1", resolve));
    this.url = `http://127.0.0.1:${this.server.address().port}`;
    return this;
  }

  close() {
    this.server.closeAllConnections();
    this.server.close();
  }

  async serve(request, response) {
    let text = "";
    for await (const chunk of request) text += chunk;
    const route = request.url.replace("/signer/v1/", "");
    this.asked.push(route);
    if (this.mode === "hangs") return;
    const answer = async () => {
      if (request.headers.authorization !== `Bearer ${API_KEY}`) return [401, { error: "no key" }];
      if (typeof this.mode === "number") return [this.mode, { error: "out of order" }];
      return this.answer(route, JSON.parse(text));
    };
    const [status, body] = await answer();
    response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
  }

  async answer(route, body) {
    switch (route) {
      case "signer-config":
        return [200, { email: { mode: "OTP" } }];
      case "prepare-oauth":
        return [200, { codeChallenge: "x", requestKey: "y", authProviders: [] }];
      case "lookup":
        return [200, { orgId: this.known ? ORG_ID : null }];
      case "signup":
      case "auth":
        this.known = true;
        return [200, { orgId: ORG_ID, otpId: "otp-1" }];
      case "otp":
        return body.otpCode === "000000" ? [400, { error: "wrong code" }] : [200, { status: "SUCCESS", credentialBundle: "bundle" }];
      case "whoami":
        return body.stampedRequest?.stamp?.stampHeaderValue === "forged" ? [401, { error: "bad stamp" }] : [200, USER];
      case "sign-payload": {
        const { payload } = JSON.parse(body.stampedRequest.body).parameters;
        return [200, { signature: await signer.sign({ hash: payload }) }];
      }
      default:
        return [404, { error: "no such route" }];
    }
  }
}
