import type { AlchemyWebSigner } from "@account-kit/signer";
import { createModularAccountV2, createModularAccountV2Client } from "@account-kit/smart-contracts";
import {
  buildDeferredActionDigest,
  deferralActions,
  installValidationActions,
  PermissionBuilder,
  PermissionType,
} from "@account-kit/smart-contracts/experimental";
import type { Hex } from "viem";
import type { Machine } from "@/app/api/machine/route";
import { chainFor } from "@/lib/chains";
import { pageTransport } from "./config";
import { get, send } from "./requests";

const DAY_S = 24 * 60 * 60;

/** The remaining life at which a new key replaces one that runs out, as `codezero doctor` asks for. */
const RENEWED_S = 7 * DAY_S;

/** Whether the node has a key for this user that holds for a while: a reload or another tab makes no second one. */
export async function hasSessionKey(orgId: string, days: number): Promise<boolean> {
  const { accounts } = await get<Machine>("/api/machine");
  const expiresAt = accounts.find((account) => account.orgId === orgId)?.expiresAt;
  const leftS = (expiresAt || Infinity) - Date.now() / 1000; // 0: it never runs out
  return expiresAt !== undefined && leftS > Math.min(RENEWED_S, (days * DAY_S) / 2);
}

/**
 * Gives a key of the server power over the user's smart account for some days. The user's signer signs a "deferred
 * action" that installs it; the key's first operation carries that along, and makes the account where there is none yet.
 */
export async function installSessionKey(
  signer: AlchemyWebSigner,
  { orgId, chainId, days }: { orgId: string; chainId: number; days: number },
): Promise<void> {
  const whoamiStamp = await signer.inner.stampWhoami();
  const { publicKey } = await send<{ publicKey: Hex }>("/api/get-api-key", { whoamiStamp });

  const shared = { signer, transport: pageTransport(window.location.origin), chain: chainFor(chainId) };
  const account = await createModularAccountV2(shared);
  const client = (
    await createModularAccountV2Client({ ...shared, signerEntity: account.signerEntity, accountAddress: account.address })
  )
    .extend(installValidationActions)
    .extend(deferralActions);
  const { entityId, nonce } = await client.getEntityIdAndNonce({ isGlobalValidation: true }); // global, as ROOT is
  const deadline = Math.floor(Date.now() / 1000) + days * DAY_S;
  const { typedData, fullPreSignatureDeferredActionDigest } = await new PermissionBuilder({
    client,
    key: { publicKey, type: "secp256k1" },
    entityId,
    nonce,
    deadline,
  })
    .addPermission({ permission: { type: PermissionType.ROOT } })
    .compileDeferred();
  const sig = await client.account.signTypedData(typedData);

  await send("/api/set-api-key-activated", {
    orgId,
    apiKey: publicKey,
    accountAddress: account.address,
    initCode: await account.getInitCode(),
    deferredActionDigest: buildDeferredActionDigest({ fullPreSignatureDeferredActionDigest, sig }),
  });
}

