import { alchemy, type AlchemyTransport } from "@account-kit/infra";
import { createPublicClient, http, type Chain, type PublicClient } from "viem";
import { chainFor } from "./chains";
import { settings } from "./settings";

const RPC_TIMEOUT_MS = 10_000;

export function chain(): Chain {
  return chainFor(settings().chainId);
}

/** Sends operations to the bundler, with the key, and reads to the RPC server. */
export function transport(): AlchemyTransport {
  const { apiKey, bundlerUrl, rpcUrl } = settings();
  const connection = apiKey ? { rpcUrl: bundlerUrl, jwt: apiKey } : { rpcUrl: bundlerUrl };
  if (rpcUrl === bundlerUrl) return alchemy({ ...connection, retryCount: 1 });
  const fetchOptions = { headers: headersFor(rpcUrl) }; // for the RPC server; the bundler gets those of its connection too
  return alchemy({ alchemyConnection: connection, nodeRpcUrl: rpcUrl, fetchOptions, retryCount: 1 });
}

export function reader(timeoutMs = RPC_TIMEOUT_MS): PublicClient {
  const { rpcUrl } = settings();
  return createPublicClient({
    chain: chain(),
    transport: http(rpcUrl, {
      timeout: timeoutMs,
      retryCount: 0,
      fetchOptions: { headers: headersFor(rpcUrl) },
    }),
  });
}

/** The API key, for Alchemy and the bundler's server alone. */
export function headersFor(url: string): Record<string, string> {
  const { apiKey, alchemyUrl, bundlerUrl } = settings();
  const knows = [alchemyUrl, bundlerUrl].some((known) => new URL(known).origin === new URL(url).origin);
  return apiKey && knows ? { Authorization: `Bearer ${apiKey}` } : {};
}

/** Posts JSON, with the API key where `headersFor` has it. Throws: no answer in time, or a redirect. */
export function postJson(url: string, body: string, timeoutMs: number): Promise<Response> {
  return fetch(url, {
    method: "POST",
    body,
    headers: { "Content-Type": "application/json", ...headersFor(url) },
    redirect: "error",
    signal: AbortSignal.timeout(timeoutMs),
  });
}
