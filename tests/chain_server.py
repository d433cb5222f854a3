"""A chain in a process: py-evm behind JSON-RPC over HTTP, mining each transaction as it comes.

`python -m tests.chain_server` prints its port; standard input takes nothing, its end stops the server.
"""

import json
import re
import sys
import threading
from ast import literal_eval
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

CHAIN_ID = 685685
# py-evm's words, and geth's for the same
GETH_WORDS = {
    "Invalid transaction nonce": "nonce too low",
    "cannot afford": "insufficient funds for gas * price + value",
}


class Chain:
    """The backend and its words, one request at a time."""

    def __init__(self):
        from eth_tester import EthereumTester, PyEVMBackend
        from web3 import EthereumTesterProvider, Web3

        backend = PyEVMBackend()
        kind = next(kind for kind in type(backend.chain).__mro__ if "chain_id" in kind.__dict__)
        kind.chain_id = CHAIN_ID
        provider = EthereumTesterProvider(EthereumTester(backend))
        w3 = Web3(provider, middleware=[])
        self._request = provider.request_func(w3, w3.middleware_onion)
        self._lock = threading.Lock()

    def answer(self, request):
        try:
            with self._lock:
                reply = self._ask(request["method"], request.get("params", []))
        except Exception as error:  # whatever it is, it is the client's
            reply = {"error": refusal(error)}
        return {"jsonrpc": "2.0", "id": request.get("id"), **reply}

    def _ask(self, method, params):
        if method == "eth_chainId":
            return {"result": hex(CHAIN_ID)}
        reply = self._request(method, params)
        return {"result": plain(reply["result"])} if "result" in reply else {"error": reply["error"]}


def refusal(error):
    said = str(error.args[0] if error.args else error)
    if found := re.search(r"execution reverted: (b['\"].*)", said, re.DOTALL):
        with suppress(ValueError, SyntaxError):
            return {"code": 3, "message": "execution reverted", "data": "0x" + literal_eval(found[1]).hex()}
    if "execution reverted" in said:
        return {"code": 3, "message": said}
    said = next((geth for words, geth in GETH_WORDS.items() if words in said), f"{type(error).__name__}: {said}")
    return {"code": -32000, "message": said}


def plain(value):
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return value
    if isinstance(value, int):
        return hex(value)
    if isinstance(value, bytes | bytearray):
        return "0x" + bytes(value).hex()
    if hasattr(value, "items"):
        return {key: plain(part) for key, part in value.items()}
    return [plain(part) for part in value]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = 1 << 16  # without these two every answer takes 40 ms more
    disable_nagle_algorithm = True
    chain: Chain

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        answers = list(map(self.chain.answer, asked)) if isinstance(asked, list) else self.chain.answer(asked)
        body = json.dumps(answers).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()

    def log_message(self, *_):
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_):
        pass  # clients are killed in the tests


def main():
    Handler.chain = Chain()
    server = Server(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_address[1], flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
