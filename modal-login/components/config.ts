import { alchemy } from "@account-kit/infra";
import { createConfig } from "@account-kit/react";
import { chainFor } from "@/lib/chains";

/** Configures account-kit: all that it asks goes to the app's own server, which adds the API key. */
export function signerConfig(chainId: number, origin: string) {
  return createConfig(
    {
      chain: chainFor(chainId),
      transport: pageTransport(origin),
      signerConnection: { rpcUrl: `${origin}/api/alchemy` },
      enablePopupOauth: true,
    },
    {
      illustrationStyle: "flat",
      auth: {
        sections: [
          [{ type: "email", placeholder: "Email" }],
          [{ type: "passkey" }, { type: "social", authProviderId: "google", mode: "popup" }],
        ],
        addPasskeyOnSignup: false,
      },
    },
  );
}

export function pageTransport(origin: string) {
  return alchemy({ rpcUrl: `${origin}/api/rpc` });
}
