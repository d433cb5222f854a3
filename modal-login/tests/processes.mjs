// Programs that tests start: where they listen, when they are ready, and their end.
import { once } from "node:events";
import { createServer } from "node:net";

export async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  server.close();
  await once(server, "close");
  return port;
}

export async function eventually(attempt, withinMs = 30_000) {
  const deadline = Date.now() + withinMs;
  for (;;) {
    try {
      return await attempt();
    } catch (error) {
      if (Date.now() > deadline) throw error;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
}

export async function stopped(child, signal = "SIGTERM") {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill(signal);
  await once(child, "exit");
}

/** What is waited for while something starts; that is stopped if it fails, since a child would keep the tests from ending. */
export async function orEnd(started, waiting) {
  try {
    return await waiting;
  } catch (error) {
    await started.stop();
    throw error;
  }
}
