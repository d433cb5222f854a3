import type { Abi } from "viem";
import { coordinatorAbi, marketAbi } from "./contracts";
import type { Call } from "./operations";
import { Refusal } from "./replies";
import { settings } from "./settings";

export function coordinatorCall(functionName: string, args: readonly unknown[]): Call {
  return { to: settings().coordinator, abi: coordinatorAbi as Abi, functionName, args };
}

/** Throws Refusal 501: no market is set. */
export function marketCall(functionName: string, args: readonly unknown[]): Call {
  const { market } = settings();
  if (!market) throw new Refusal(501, "there is no prediction market: PRG_CONTRACT_ADDRESS is not set");
  return { to: market, abi: marketAbi as Abi, functionName, args };
}
