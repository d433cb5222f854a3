import { z } from "zod";
import { forward } from "@/lib/alchemy";
import { readJson, Refusal, replying, validated } from "@/lib/replies";

/** What the page's signer asks of Alchemy goes through here, so that the API key stays on the server. */
export function POST(request: Request, { params }: { params: Promise<{ route: string }> }): Promise<Response> {
  return replying(request, async () => {
    const { route } = await params;
    if (!/^[a-z0-9-]{1,40}$/.test(route)) throw new Refusal(404, "no such route");
    const body = validated(await readJson(request), z.record(z.unknown()));
    const { status, text } = await forward(route, JSON.stringify(body));
    return new Response(text, { status, headers: { "Content-Type": "application/json" } });
  });
}
