import { gensynTestnet } from "@account-kit/infra";
import type { Chain } from "viem";

/** For browser and server. Where requests go is up to the transports, not to the addresses in it. */
export function chainFor(chainId: number): Chain {
  return { ...gensynTestnet, id: chainId };
}
