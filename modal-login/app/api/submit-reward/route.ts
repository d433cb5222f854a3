import { z } from "zod";
import { coordinatorCall } from "@/lib/calls";
import { int, orgId, peerId, uint } from "@/lib/inputs";
import { write } from "@/lib/operations";
import { post } from "@/lib/replies";

const input = z.object({ orgId, roundNumber: uint, stageNumber: uint, reward: int, peerId });

export const POST = post(input, ({ orgId, roundNumber, stageNumber, reward, peerId }) =>
  write(orgId, coordinatorCall("submitReward", [roundNumber, stageNumber, reward, peerId])),
);
