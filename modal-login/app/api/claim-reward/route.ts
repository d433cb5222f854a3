import { z } from "zod";
import { marketCall } from "@/lib/calls";
import { orgId, peerId, uint } from "@/lib/inputs";
import { write } from "@/lib/operations";
import { post } from "@/lib/replies";

const input = z.object({ orgId, gameId: uint, peerId });

export const POST = post(input, ({ orgId, gameId, peerId }) =>
  write(orgId, marketCall("claimReward", [gameId, peerId])),
);
