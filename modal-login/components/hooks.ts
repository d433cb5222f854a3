import { useCallback, useEffect, useState } from "react";
import type { Machine } from "@/app/api/machine/route";
import { get } from "./requests";

const EVERY_MS = 10_000;
const TURNKEY_TIMEOUT_MS = 4000;

/**
 * Whether the server reaches Alchemy and this browser Turnkey; undefined until that is known, within 5 s. Asked again and
 * again while it matters.
 */
export function useHealth(matters: boolean): { alchemy: string | undefined; check: () => void } {
  const [alchemy, setAlchemy] = useState<string>();
  const [round, setRound] = useState(0);
  useEffect(() => {
    let current = true;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const ask = async () => {
      const [server, frame] = await Promise.all([
        get<{ alchemy: string }>("/api/health")
          .then((health) => health.alchemy)
          .catch(() => "unreachable: the sign-in app itself does not answer, is it still running?"),
        canLoadTurnkey(),
      ]);
      const found = server === "reachable" ? frame : server;
      if (!current) return;
      setAlchemy(found);
      if (matters) timer = setTimeout(ask, EVERY_MS);
    };
    void ask();
    return () => {
      current = false;
      clearTimeout(timer);
    };
  }, [round, matters]);
  return { alchemy, check: useCallback(() => setRound((now) => now + 1), []) };
}

/** Turnkey's frame keeps the user's key; account-kit waits for it for ever. */
function canLoadTurnkey(): Promise<string> {
  const asked = fetch("https://auth.turnkey.com/", { mode: "no-cors", signal: AbortSignal.timeout(TURNKEY_TIMEOUT_MS) });
  return asked.then(
    () => "reachable",
    () => "unreachable: this browser cannot load auth.turnkey.com, which keeps your key; does something block it?",
  );
}

/** Who has signed in on this machine; undefined until that is known. */
export function useMachine(): { machine: Machine | undefined; refresh: () => Promise<void> } {
  const [machine, setMachine] = useState<Machine>();
  const refresh = useCallback(
    () =>
      get<Machine>("/api/machine")
        .catch((): Machine => ({ accounts: [], peers: [] }))
        .then(setMachine),
    [],
  );
  useEffect(() => void refresh(), [refresh]);
  return { machine, refresh };
}
