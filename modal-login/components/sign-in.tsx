"use client";

import { useAuthModal, useLogout, useSigner, useSignerStatus, useUser } from "@account-kit/react";
import type { AlchemyWebSigner } from "@account-kit/signer";
import { useEffect, useRef, useState } from "react";
import { useHealth, useMachine } from "./hooks";
import { hasSessionKey, installSessionKey } from "./session-key";
import { Failed, Installing, Loading, Ready, SignedOut, Unreachable } from "./views";

/** Set while somebody is signed in with this browser, to tell a session that ran out from one that never was. */
const SIGNED_IN = "codezero-signed-in";

type Installation = { orgId: string; state: "under way" | "done" | "failed"; reason?: string };

export function SignIn({ chainId, sessionDays }: { chainId: number; sessionDays: number }) {
  const signer = useSigner<AlchemyWebSigner>();
  const status = useSignerStatus();
  const user = useUser();
  const { openAuthModal, closeAuthModal, isOpen } = useAuthModal();
  const { logout } = useLogout();
  const { alchemy, check } = useHealth(!status.isConnected);
  const { machine, refresh } = useMachine();
  const [installation, setInstallation] = useState<Installation>();
  const [attempt, setAttempt] = useState(0);
  const tried = useRef("");

  const orgId = status.isConnected && user?.type === "sca" ? user.orgId : undefined;
  useEffect(() => {
    // Once for each user and attempt, however often the signer's state changes meanwhile.
    if (!orgId || !signer || tried.current === `${orgId} ${attempt}`) return;
    tried.current = `${orgId} ${attempt}`;
    setInstallation({ orgId, state: "under way" });
    localStorage.setItem(SIGNED_IN, orgId);
    const install = async () => {
      if (!(await hasSessionKey(orgId, sessionDays))) await installSessionKey(signer, { orgId, chainId, days: sessionDays });
      await refresh();
      setInstallation({ orgId, state: "done" });
    };
    install().catch((error: unknown) => {
      const reason = error instanceof Error ? error.message : String(error);
      setInstallation({ orgId, state: "failed", reason: reason.split("\n")[0]?.slice(0, 300) });
    });
  }, [orgId, signer, attempt, chainId, sessionDays, refresh]);

  const unreachable = alchemy !== undefined && alchemy !== "reachable" && !orgId;
  useEffect(() => {
    // It would wait without a word. A code that is being typed in may outlast a short outage.
    if (unreachable && isOpen && !status.isAuthenticating) closeAuthModal();
  }, [unreachable, isOpen, closeAuthModal, status.isAuthenticating]);

  const signIn = () => {
    check();
    openAuthModal();
  };
  const logOut = () => {
    localStorage.removeItem(SIGNED_IN);
    tried.current = "";
    setInstallation(undefined);
    logout();
  };

  if (!machine || !alchemy) return <Loading />;
  if (orgId && installation?.orgId === orgId) {
    if (installation.state === "done") {
      return <Ready machine={machine} orgId={orgId} email={user?.email} logOut={logOut} />;
    }
    if (installation.state === "failed") {
      return <Failed reason={installation.reason ?? ""} again={() => setAttempt(attempt + 1)} logOut={logOut} />;
    }
    return <Installing />;
  }
  if (unreachable) {
    return <Unreachable reason={alchemy.replace(/^unreachable: /, "")} machine={machine} again={check} />;
  }
  if (status.isInitializing || orgId) return <Loading />;
  const ended = localStorage.getItem(SIGNED_IN) !== null;
  return <SignedOut machine={machine} ended={ended} signIn={signIn} />;
}
