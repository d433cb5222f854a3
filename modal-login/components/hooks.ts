import { useCallback, useEffect, useRef, useState } from "react";
import type { Machine } from "@/app/api/machine/route";
import { get } from "./requests";

const AGAIN_MS = 10_000;
const WHILE_WELL_MS = 60_000;

/** Whether Alchemy can be reached from the server; undefined until that is known, within 5 s. */
export function useHealth(): { alchemy: string | undefined; check: () => void } {
  const [alchemy, setAlchemy] = useState<string>();
  const [round, setRound] = useState(0);
  useEffect(() => {
    let current = true;
    let timer: ReturnType<typeof setTimeout>;
    const ask = async () => {
      const found = await get<{ alchemy: string }>("/api/health")
        .then((health) => health.alchemy)
        .catch(() => "unreachable: the sign-in app itself does not answer, is it still running?");
      if (!current) return;
      setAlchemy(found);
      timer = setTimeout(ask, found === "reachable" ? WHILE_WELL_MS : AGAIN_MS);
    };
    void ask();
    return () => {
      current = false;
      clearTimeout(timer);
    };
  }, [round]);
  return { alchemy, check: useCallback(() => setRound((now) => now + 1), []) };
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

/** True once something has been so for a time. */
export function useOverdue(waiting: boolean, afterMs: number): boolean {
  const [overdue, setOverdue] = useState(false);
  const since = useRef<ReturnType<typeof setTimeout>>(undefined);
  useEffect(() => {
    setOverdue(false);
    if (!waiting) return undefined;
    since.current = setTimeout(() => setOverdue(true), afterMs);
    return () => clearTimeout(since.current);
  }, [waiting, afterMs]);
  return overdue;
}
