/** Asks the app's own server. Throws: it answers with an error, in its words, or not at all. */
export async function send<T = unknown>(path: string, body: unknown): Promise<T> {
  return answer<T>(
    await fetch(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) }),
  );
}

export async function get<T>(path: string): Promise<T> {
  return answer<T>(await fetch(path, { cache: "no-store", signal: AbortSignal.timeout(5000) }));
}

async function answer<T>(reply: Response): Promise<T> {
  const content = (await reply.json().catch(() => ({}))) as T & { error?: string };
  if (!reply.ok) throw new Error(content.error ?? `the app answers with HTTP ${reply.status}`);
  return content;
}
