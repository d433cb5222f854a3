import { newTicket } from "@/lib/access";
import { replying } from "@/lib/replies";

export const dynamic = "force-dynamic";

/** Makes a ticket for whoever may ask already, to let a browser in: the address is the app's, with `?ticket=`. */
export function POST(request: Request): Promise<Response> {
  return replying(request, async () => Response.json({ ticket: newTicket() }));
}
