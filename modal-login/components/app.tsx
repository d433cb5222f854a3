"use client";

import { AlchemyAccountProvider } from "@account-kit/react";
import { QueryClient } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { signerConfig } from "./config";
import { SignIn } from "./sign-in";
import { Insecure, Loading } from "./views";

const queryClient = new QueryClient();

type Start = "loading" | "insecure" | ReturnType<typeof signerConfig>;

export function App({ chainId, sessionDays }: { chainId: number; sessionDays: number }) {
  // Made in the browser alone: it talks to the server that the page came from, and needs the browser's cryptography.
  const [start, setStart] = useState<Start>("loading");
  useEffect(() => {
    const usable = typeof window.crypto?.subtle === "object";
    setStart(usable ? signerConfig(chainId, window.location.origin) : "insecure");
  }, [chainId]);

  if (start === "loading") return <Loading />;
  if (start === "insecure") return <Insecure />;
  return (
    <AlchemyAccountProvider config={start} queryClient={queryClient}>
      <SignIn chainId={chainId} sessionDays={sessionDays} />
    </AlchemyAccountProvider>
  );
}
