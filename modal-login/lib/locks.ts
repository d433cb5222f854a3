import { Refusal } from "./replies";

const MAX_WAITING = 64;

// On globalThis: every route may have its own copy of this module, and all must see the same queues.
const shared = globalThis as typeof globalThis & { signInQueues?: Map<string, Queue> };
const queues = (shared.signInQueues ??= new Map());

interface Queue {
  last: Promise<unknown>;
  waiting: number;
}

/** Runs tasks of one name one after the other. Throws Refusal 503: too many are waiting. */
export async function oneAtATime<T>(name: string, task: () => Promise<T>): Promise<T> {
  const queue = queues.get(name) ?? { last: Promise.resolve(), waiting: 0 };
  if (queue.waiting >= MAX_WAITING) throw new Refusal(503, `busy: ${MAX_WAITING} requests are waiting; try again later`);
  queues.set(name, queue);
  queue.waiting += 1;
  const turn = queue.last.then(task, task);
  queue.last = turn.catch(() => undefined);
  try {
    return await turn;
  } finally {
    queue.waiting -= 1;
    if (queue.waiting === 0) queues.delete(name);
  }
}
