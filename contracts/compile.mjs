// Compiles every contract beside this file into an artifact: ABI, bytecode, and the hash of the source.
// node compile.mjs [folder]: where to write them; default is where the package reads them.
import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import solc from "solc";

const here = fileURLToPath(new URL(".", import.meta.url));
const folder = process.argv[2] ?? `${here}/../codezero/ledger/artifacts`;
const settings = {
  evmVersion: "paris", // runs on every chain; later ones need opcodes that private chains may lack
  optimizer: { enabled: true, runs: 200 },
  metadata: { appendCBOR: false }, // else the bytecode changes with every comment
};

const files = readdirSync(here).filter((name) => name.endsWith(".sol"));
const sources = Object.fromEntries(files.map((name) => [name, { content: readFileSync(`${here}/${name}`, "utf8") }]));
const outputSelection = { "*": { "*": ["abi", "evm.bytecode.object"] } };
const input = { language: "Solidity", sources, settings: { ...settings, outputSelection } };
const output = JSON.parse(solc.compile(JSON.stringify(input)));
for (const message of output.errors ?? []) console.error(message.formattedMessage);
if (output.errors?.length) process.exit(1);

mkdirSync(folder, { recursive: true });
for (const file of files) {
  const contract = file.replace(".sol", "");
  const compiled = output.contracts[file][contract];
  const artifact = {
    sourceSha256: createHash("sha256").update(sources[file].content).digest("hex"),
    bytecode: `0x${compiled.evm.bytecode.object}`,
    abi: compiled.abi,
  };
  writeFileSync(`${folder}/${contract}.json`, formatted(artifact));
  console.log(`${contract}: ${compiled.evm.bytecode.object.length / 2} bytes of code`);
}

/** Returns JSON with a line for each entry of the ABI, without the names of types in Solidity, which nothing reads. */
function formatted({ abi, ...others }) {
  const fields = Object.entries(others).map(([name, value]) => `  "${name}": ${JSON.stringify(value)},\n`);
  const withoutNames = (name, value) => (name === "internalType" ? undefined : value);
  const entries = abi.map((entry) => `    ${JSON.stringify(entry, withoutNames)}`);
  return `{\n${fields.join("")}  "abi": [\n${entries.join(",\n")}\n  ]\n}\n`;
}
