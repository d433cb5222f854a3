import { z } from "zod";
import { whoami } from "@/lib/alchemy";
import { stampedRequest } from "@/lib/inputs";
import { post } from "@/lib/replies";
import { addKey } from "@/lib/store";

const input = z.object({ whoamiStamp: stampedRequest });

/** Makes a key pair for whoever proves to be signed in; the page then gives it power over the smart account. */
export const POST = post(input, async ({ whoamiStamp }) => ({ publicKey: await addKey(await whoami(whoamiStamp)) }));
