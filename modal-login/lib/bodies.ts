/** The text of a request or reply. Throws TooLong, after as many bytes. */
export async function boundedText(message: Request | Response, maxBytes: number): Promise<string> {
  if (!message.body) return "";
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of message.body) {
    size += chunk.byteLength;
    if (size > maxBytes) throw new TooLong(`more than ${maxBytes} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

export class TooLong extends Error {}
