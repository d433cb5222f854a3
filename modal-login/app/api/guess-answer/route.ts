import { z } from "zod";
import { marketCall } from "@/lib/calls";
import { orgId, peerId, uint } from "@/lib/inputs";
import { write } from "@/lib/operations";
import { post } from "@/lib/replies";

const input = z.object({ orgId, gameId: uint, peerId, clueId: uint, choiceIdx: uint, bet: uint });

export const POST = post(input, ({ orgId, gameId, peerId, clueId, choiceIdx, bet }) =>
  write(orgId, marketCall("guessAnswer", [gameId, peerId, clueId, choiceIdx, bet])),
);
