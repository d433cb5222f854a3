import { z } from "zod";
import { coordinatorCall } from "@/lib/calls";
import { orgId, peerId } from "@/lib/inputs";
import { write } from "@/lib/operations";
import { post } from "@/lib/replies";

const input = z.object({ orgId, peerId });

export const POST = post(input, ({ orgId, peerId }) =>
  write(orgId, coordinatorCall("registerPeer", [peerId])),
);
