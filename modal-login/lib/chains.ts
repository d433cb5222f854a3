import { gensynTestnet } from "@account-kit/infra";
import type { Chain } from "viem";

/** The chain, for browser and server. The transports decide where requests go, not the addresses in it. */
export function chainFor(chainId: number): Chain {
  return { ...gensynTestnet, id: chainId };
}
