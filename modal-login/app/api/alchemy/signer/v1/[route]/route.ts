import { z } from "zod";
import { forward } from "@/lib/alchemy";
import { post, Refusal } from "@/lib/replies";

/** What the page's signer asks of Alchemy goes through here, so that the API key stays on the server. */
export async function POST(request: Request, { params }: { params: Promise<{ route: string }> }): Promise<Response> {
  const { route } = await params;
  let status = 200;
  const answer = await post(z.record(z.unknown()), async (body) => {
    if (!/^[a-z0-9-]{1,40}$/.test(route)) throw new Refusal(404, "no such route");
    const reply = await forward(route, JSON.stringify(body));
    status = reply.status;
    return reply.text;
  })(request);
  if (!answer.ok) return answer;
  return new Response(await answer.json(), { status, headers: { "Content-Type": "application/json" } });
}
