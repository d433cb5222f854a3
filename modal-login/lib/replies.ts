import { z } from "zod";
import { boundedText, TooLong } from "./bodies";

const MAX_BODY_BYTES = 256 * 1024;
const SHOWN_CHARS = 200;

/** What a request is answered with instead of its result: a status and one line. */
export class Refusal extends Error {
  constructor(
    readonly status: number,
    message: string,
    readonly fields: Record<string, unknown> = {},
  ) {
    super(message);
  }
}

/** A handler of POST with JSON: 400 and a reason for input that is not of the schema. */
export function post<S extends z.ZodTypeAny>(
  schema: S,
  act: (input: z.output<S>) => Promise<unknown>,
): (request: Request) => Promise<Response> {
  return (request) =>
    replying(request, async () => Response.json(await act(validated(await readJson(request), schema))));
}

/** Answers what is thrown; only Refusals in their own words. */
export async function replying(request: Request, act: () => Promise<Response>): Promise<Response> {
  try {
    return await act();
  } catch (error) {
    const path = new URL(request.url).pathname;
    if (error instanceof Refusal) {
      console.error(`${path}: ${error.status} ${error.message}`);
      return Response.json({ error: error.message, ...error.fields }, { status: error.status });
    }
    console.error(`${path}: 500 ${error instanceof Error ? briefly(error) : "unknown"}`);
    return Response.json({ error: "an unexpected error occurred: this is a fault of the app" }, { status: 500 });
  }
}

export function validated<S extends z.ZodTypeAny>(value: unknown, schema: S): z.output<S> {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  const where = issue?.path.join(".");
  throw new Refusal(400, `bad request: ${where ? `${where}: ` : ""}${oneLine(issue?.message ?? "not of the form")}`);
}

/** The beginning of another program's text. Addresses go, since those of hosted servers carry keys. */
export function oneLine(text: unknown): string {
  return String(text ?? "unknown error")
    .replace(/\S+:\/\/\S*/g, "(address)")
    .replace(/[^\x20-\x7e]+/g, " ")
    .slice(0, SHOWN_CHARS);
}

/** An error's name and first line: the lines after it are, of viem's errors, addresses and request bodies. */
export function briefly(error: Error): string {
  return `${error.name}: ${oneLine(error.message.split("\n")[0])}`;
}

/** Throws Refusal: 413, 415, or 400 for what is no JSON. */
export async function readJson(request: Request): Promise<unknown> {
  const kind = request.headers.get("content-type") ?? "";
  // No form and no <script> of another page can send this type without the browser asking first.
  if (!/^application\/json\b/i.test(kind)) throw new Refusal(415, "bad request: send application/json");
  try {
    return JSON.parse(await boundedText(request, MAX_BODY_BYTES));
  } catch (error) {
    throw error instanceof TooLong
      ? new Refusal(413, `bad request: ${error.message}`)
      : new Refusal(400, "bad request: no JSON");
  }
}
