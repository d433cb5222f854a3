"""A stand-in for `vllm serve` of vLLM 0.30.0: its options, paths, refusals and answers, with transformers behind them.

    python tests/vllm_stand_in.py JOURNAL FAULT serve FOLDER --uds PATH ...

JOURNAL gets a line of JSON for each start and call. FAULT is what goes wrong, a name of `FAULTS` or empty; with "once"
before it only the first start has it. With a fault no model is loaded, and every completion is the token 7; with
"recorded" each answer is the one of tests/fixtures.
"""

import argparse
import hashlib
import json
import os
import socketserver
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

TURN = threading.Lock()
RECORDED = Path(__file__).parent / "fixtures" / "vllm" / "completion-0.30.0.json"


def answer(choices, model, prompt):
    """A `CompletionResponse`."""
    return {
        "id": "cmpl-8f14e45fceea167a",
        "object": "text_completion",
        "created": 1795478400,
        "model": model,
        "choices": [
            {
                "index": index,
                "text": "\ufffd" * len(ids),
                "logprobs": {
                    "text_offset": list(range(len(ids))),
                    "token_logprobs": logprobs,
                    "tokens": [f"token_id:{id_}" for id_ in ids],
                    "top_logprobs": [{f"token_id:{id_}": one} for id_, one in zip(ids, logprobs, strict=False)],
                },
                "finish_reason": "length",
                "stop_reason": None,
                "token_ids": ids,
                "prompt_logprobs": None,
                "prompt_token_ids": prompt,
                "routed_experts": None,
            }
            for index, (ids, logprobs) in enumerate(choices)
        ],
        "service_tier": None,
        "system_fingerprint": "vllm-0.30.0-1a2b3c4d",
        "usage": {"prompt_tokens": len(prompt), "total_tokens": len(prompt), "completion_tokens": 0},
        "kv_transfer_params": None,
        "ec_transfer_params": None,
        "metrics": None,
    }


def error(status, message):
    return status, {"error": {"message": message, "type": "BadRequestError", "param": None, "code": status}}


def garbled(**changes):
    """What a completion of one token has instead."""
    return lambda server, body: (200, answer([([7], [-1.0])] * body["n"], "m", []) | changes)


def of(ids, logprobs, num=None):
    return lambda server, body: (200, answer([(ids, logprobs)] * (num or body["n"]), "m", []))


def dies(server, body):
    os._exit(1)


def hangs(server, body):
    time.sleep(60)


FAULTS = {
    "too many tokens": of([7] * 9, [-1.0] * 9),
    "ids out of vocabulary": of([7] * 7 + [300], [-1.0] * 8),
    "negative ids": of([-1] * 8, [-1.0] * 8),
    "nan log-probs": of([7] * 8, [float("nan")] * 8),
    "no log-probs": of([7] * 8, [None] * 8),
    "log-probs above 0": of([7] * 8, [1.0] * 8),
    "fewer log-probs than tokens": of([7] * 8, [-1.0] * 7),
    "no tokens": of([], []),
    "cut off before the end": of([7], [-1.0]),
    "more attempts": of([7] * 8, [-1.0] * 8, 5),
    "no choices": garbled(choices=[]),
    "choices of another kind": garbled(choices=[{"index": 0, "message": {"content": "x"}}]),
    "garbage": lambda server, body: (200, "\x1b[2J no luck"),
    "deep": lambda server, body: (200, "[" * 100_000),
    "endless": lambda server, body: (200, "x" * (4 << 20)),
    "an error": lambda server, body: error(500, "out of \x1b[2J luck"),
    "dies in the middle": dies,
    "hangs": hangs,
}


def loaded(folder):
    from transformers import AutoModelForCausalLM

    return AutoModelForCausalLM.from_pretrained(folder).eval()


class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True

    def __init__(self, journal, fault, options):
        self.journal, self.fault, self.options = journal, fault, options
        self.loaded, self.asleep, self.model = {}, False, None
        if not fault:
            self.model = loaded(options.folder)
        super().__init__(options.uds, Handler)

    def note(self, **facts):
        with self.journal.open("a") as file:
            file.write(json.dumps(facts) + "\n")

    def get_request(self):
        return super().get_request()[0], ("here", 0)

    def reply(self, path, query, body):
        if path == "/health":
            return 200, None
        weights = Path(body.get("lora_path") or body.get("kwargs", {}).get("weights_path", "/"))
        sums = {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in weights.glob("*.safetensors")}
        self.note(path=path, query=query, body=body, asleep=self.asleep, files=sums, mode=weights.stat().st_mode & 0o77)
        if path == "/v1/load_lora_adapter" and self.options.enable_lora:
            return self.load(body["lora_name"], body["lora_path"])
        if path == "/v1/unload_lora_adapter" and self.options.enable_lora:
            found = self.loaded.pop(body["lora_name"], None)
            return (200, "Success") if found else error(404, "The lora adapter cannot be found.")
        if path == "/v1/completions":
            return self.complete(body)
        if os.environ.get("VLLM_SERVER_DEV_MODE") == "1" and self.options.enable_sleep_mode:
            if path == "/sleep":
                self.asleep = query["level"] == ["1"]
                return 200, None
            if path == "/wake_up":
                self.asleep = False
                return 200, None
            if path == "/collective_rpc" and body["method"] == "reload_weights" and not self.asleep:
                if not self.fault:
                    self.model = loaded(body["kwargs"]["weights_path"])
                return 200, {"results": [None]}
        return error(404, f"nothing at {path}")

    def load(self, name, path):
        config = json.loads((Path(path) / "adapter_config.json").read_text())
        if self.fault == "refuses the adapter" or config["r"] > self.options.max_lora_rank or self.asleep:
            return error(500, f"LoRA rank {config['r']} is greater than max_lora_rank {self.options.max_lora_rank}.")
        if name in self.loaded:
            return error(400, f"The lora adapter '{name}' has already been loaded.")
        self.loaded[name] = True
        if self.model is not None:
            from peft import PeftModel

            base = self.model.unload() if hasattr(self.model, "unload") else self.model
            self.model = PeftModel.from_pretrained(base, path).eval()
            self.loaded[name] = self.model
        return 200, f"Success: LoRA adapter '{name}' added successfully."

    def complete(self, body):
        name = body["model"]
        if self.asleep or (name not in self.loaded and name != self.options.served_model_name):
            return error(404, f"The model `{name}` does not exist.")
        if body["temperature"] == 0 and body["n"] > 1:
            return error(400, f"n must be 1 when using greedy sampling, got {body['n']}.")
        if self.fault == "recorded":
            return 200, RECORDED.read_text()
        if self.fault in FAULTS:
            return FAULTS[self.fault](self, body)
        if self.model is None:
            return of([7] * body["max_tokens"], [-1.0] * body["max_tokens"])(self, body)
        with TURN:
            rows = [self.row(body, body["seed"] + index) for index in range(body["n"])]
        return 200, answer(rows, name, body["prompt"])

    def row(self, body, seed):
        import torch

        from codezero.llm.draw import SamplingParams
        from codezero.llm.sample import SampleRequest, sample_groups

        ends = [] if not body["ignore_eos"] else body["stop_token_ids"]
        request = SampleRequest(
            prompts=[body["prompt"]],
            num_generations=1,
            params=SamplingParams(max_new_tokens=body["max_tokens"], temperature=body["temperature"]),
            end_ids=ends,
            pad_id=0,
            generator=torch.Generator().manual_seed(seed),
        )
        ((row,),) = sample_groups(self.model, request)
        if self.options.logprobs_mode == "processed_logprobs":
            return list(row.completion_ids), list(row.logprobs)
        ids = torch.tensor([[*row.prompt_ids, *row.completion_ids]])
        with torch.no_grad():
            raw = self.model(ids).logits[0, len(row.prompt_ids) - 1 : -1].log_softmax(-1)
        return list(row.completion_ids), raw.gather(-1, ids[0, len(row.prompt_ids) :, None])[:, 0].tolist()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        url = urlsplit(self.path)
        raw = self.rfile.read(int(self.headers.get("content-length", 0)))
        status, found = self.server.reply(url.path, parse_qs(url.query), json.loads(raw or b"null") or {})
        content = b"" if found is None else (found if isinstance(found, str) else json.dumps(found)).encode()
        self.send_response(status)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST

    def log_message(self, *_):
        pass


def main():
    journal, fault = Path(sys.argv[1]), sys.argv[2]
    if fault.startswith("once "):
        fault = "" if journal.exists() else fault.removeprefix("once ")
        fault = fault or "none"
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("verb", choices=["serve"])
    parser.add_argument("folder")
    for name in ("uds", "served-model-name", "dtype", "kv-cache-memory-bytes", "gpu-memory-utilization"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--generation-config", choices=["vllm"], required=True)
    parser.add_argument("--logprobs-mode", default="raw_logprobs")
    parser.add_argument("--max-model-len", choices=["auto"], required=True)
    parser.add_argument("--max-lora-rank", type=int, default=16, choices=[1, 8, 16, 32, 64, 128, 256, 320, 512])
    for name in ("enable-lora", "enable-sleep-mode", "disable-log-stats", "disable-uvicorn-access-log"):
        parser.add_argument(f"--{name}", action="store_true")
    options = parser.parse_args(sys.argv[3:])
    server = Server(journal, fault, options)
    server.note(start=sys.argv[3:], pid=os.getpid(), room=os.stat(Path(options.uds).parent).st_mode & 0o77)
    if fault == "starts for ever":
        server.socket.close()
        time.sleep(60)
    if fault == "does not start":
        sys.exit("no \x1b[2J luck: CUDA out of memory")
    server.serve_forever()


if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).parent.parent)  # not tests/, whose `packaging` is another
    main()
