import { z } from "zod";
import { coordinatorCall } from "@/lib/calls";
import { orgId, peerId, uint, winners } from "@/lib/inputs";
import { write } from "@/lib/operations";
import { post } from "@/lib/replies";

const input = z.object({ orgId, roundNumber: uint, winners, peerId });

export const POST = post(input, ({ orgId, roundNumber, winners, peerId }) =>
  write(orgId, coordinatorCall("submitWinners", [roundNumber, winners, peerId])),
);
