import type { NextRequest } from "next/server";
import { proof } from "@/lib/access";
import { reachability } from "@/lib/alchemy";

export const dynamic = "force-dynamic";

/** Always 200 while the app runs; within 3 s. */
export async function GET(request: NextRequest): Promise<Response> {
  const nonce = request.nextUrl.searchParams.get("nonce") ?? "";
  return Response.json({ alchemy: await reachability(), proof: proof(nonce) });
}
