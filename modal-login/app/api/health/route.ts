import { reachability } from "@/lib/alchemy";

export const dynamic = "force-dynamic";

/** Always 200 while the app runs; within 3 s. */
export async function GET(): Promise<Response> {
  return Response.json({ alchemy: await reachability() });
}
