"""llama.cpp's C interface, from the library inside the xllamacpp wheel: batches of sequences in, logits out.

The wheel's own server does not suffice: it gives log-probs before the temperature or after top-p, but not at the
temperature before top-p; it reads adapters at start only; and it batches by arrival, so that equal seeds do not give
equal rollouts. This module uses only parts of C structures that have not changed for years: the batch, and the first
four numbers of the context's parameters, which are read back. Another wheel is refused before it computes anything.
"""

from __future__ import annotations

import ctypes as c
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

PACKAGE = "xllamacpp"
BATCH_TOKENS = 256
"""The number of prompt tokens that are read at once; more take more memory and hardly less time."""
CACHE_STEP = 256
"""A sequence's part of the cache is a multiple of this number of tokens."""
_Int, _Pointer = c.c_int32, c.c_void_p


class _Parameters(c.Structure):
    """A structure that is larger than any version's; C uses only the part that it knows."""

    _fields_ = (("numbers", c.c_uint32 * 256),)


class _Batch(c.Structure):
    _fields_ = (
        ("n_tokens", _Int),
        ("token", c.POINTER(_Int)),
        ("embd", _Pointer),
        ("pos", c.POINTER(_Int)),
        ("n_seq_id", c.POINTER(_Int)),
        ("seq_id", c.POINTER(c.POINTER(_Int))),
        ("logits", c.POINTER(c.c_int8)),
    )


_SIGNATURES = {
    "llama_log_set": (None, _Pointer, _Pointer),
    "llama_backend_init": (None,),
    "llama_model_default_params": (_Parameters,),
    "llama_context_default_params": (_Parameters,),
    "llama_model_load_from_file": (_Pointer, c.c_char_p, _Parameters),
    "llama_model_get_vocab": (_Pointer, _Pointer),
    "llama_vocab_n_tokens": (_Int, _Pointer),
    "llama_init_from_model": (_Pointer, _Pointer, _Parameters),
    "llama_set_n_threads": (None, _Pointer, _Int, _Int),
    "llama_n_ctx": (c.c_uint32, _Pointer),
    "llama_n_batch": (c.c_uint32, _Pointer),
    "llama_n_ubatch": (c.c_uint32, _Pointer),
    "llama_n_seq_max": (c.c_uint32, _Pointer),
    "llama_adapter_lora_init": (_Pointer, _Pointer, c.c_char_p),
    "llama_set_adapters_lora": (_Int, _Pointer, c.POINTER(_Pointer), c.c_size_t, c.POINTER(c.c_float)),
    "llama_batch_init": (_Batch, _Int, _Int, _Int),
    "llama_decode": (_Int, _Pointer, _Batch),
    "llama_get_logits_ith": (c.POINTER(c.c_float), _Pointer, _Int),
    "llama_get_memory": (_Pointer, _Pointer),
    "llama_memory_seq_cp": (None, _Pointer, _Int, _Int, _Int, _Int),
    "llama_memory_clear": (None, _Pointer, c.c_bool),
}
_SILENT = c.CFUNCTYPE(None, c.c_int, c.c_char_p, _Pointer)(lambda level, text, data: None)


class LlamaContext:
    """A model with an adapter, and a key-value cache of `num_sequences` sequences. It is not freed before its process
    ends."""

    def __init__(self, base: Path, adapter: Path | None, num_sequences: int, length: int, threads: int) -> None:
        """`length` is the most tokens of a sequence. Raises ImportError, OSError, AttributeError: xllamacpp or one of
        the functions is missing; RuntimeError: the files cannot be loaded, or the structures differ."""
        import xllamacpp.xllamacpp as wheel

        lib = c.CDLL(wheel.__file__)
        for name, (result, *arguments) in _SIGNATURES.items():
            function = getattr(lib, name)
            function.restype, function.argtypes = result, arguments
        self._lib = lib
        lib.llama_log_set(_SILENT, None)
        lib.llama_backend_init()
        model = lib.llama_model_load_from_file(bytes(base), lib.llama_model_default_params())
        if not model:
            raise RuntimeError(f"it cannot load {base.name}")
        parameters = lib.llama_context_default_params()
        size = max(BATCH_TOKENS, num_sequences)
        wanted = [num_sequences * -(-length // CACHE_STEP) * CACHE_STEP, size, size, num_sequences]
        parameters.numbers[:4] = wanted
        context = lib.llama_init_from_model(model, parameters)
        if not context:
            raise RuntimeError(f"it has no room for {num_sequences} sequences of {length} tokens")
        self._context = context
        names = ("llama_n_ctx", "llama_n_batch", "llama_n_ubatch", "llama_n_seq_max")
        found = [getattr(lib, name)(context) for name in names]
        if found != wanted:
            raise RuntimeError(f"this version takes parameters differently: {wanted} became {found}")
        lib.llama_set_n_threads(context, threads, threads)
        if adapter is not None:
            self._apply(model, adapter)
        self._memory = lib.llama_get_memory(context)
        self._batch = lib.llama_batch_init(size, 0, 1)
        self._num_tokens = lib.llama_vocab_n_tokens(lib.llama_model_get_vocab(model))

    def _apply(self, model: int, adapter: Path) -> None:
        loaded = self._lib.llama_adapter_lora_init(model, bytes(adapter))
        adapters, scales = (_Pointer * 1)(loaded), (c.c_float * 1)(1.0)
        if not loaded or self._lib.llama_set_adapters_lora(self._context, adapters, 1, scales):
            raise RuntimeError(f"it cannot apply {adapter.name}")

    def read(self, prompt: Sequence[int], sequence: int, on_batch: Callable[[], None]) -> NDArray[np.float32]:
        """Fills an empty sequence with a prompt, calling `on_batch` after each batch of tokens. Returns the logits [V]
        of the next token."""
        for start in range(0, len(prompt), BATCH_TOKENS):
            part = prompt[start : start + BATCH_TOKENS]
            last = start + len(part) == len(prompt)
            rows = [(token, start + i, sequence, last and i + 1 == len(part)) for i, token in enumerate(part)]
            self._decode(rows)
            on_batch()
        return self._logits(len(rows) - 1).copy()

    def share(self, source: int, target: int) -> None:
        """Copies the contents of a sequence to an empty one."""
        self._lib.llama_memory_seq_cp(self._memory, source, target, -1, -1)

    def advance(self, tokens: Sequence[int], positions: Sequence[int], sequences: Sequence[int]) -> NDArray[np.float32]:
        """Appends one token to each of the sequences. Returns the logits [B, V] of the next tokens."""
        self._decode([(*row, True) for row in zip(tokens, positions, sequences, strict=True)])
        return np.stack([self._logits(i) for i in range(len(tokens))])

    def clear(self) -> None:
        """Empties all sequences."""
        self._lib.llama_memory_clear(self._memory, False)

    def _decode(self, rows: Sequence[tuple[int, int, int, bool]]) -> None:
        """Computes a batch of rows (token, position, sequence, True if its logits are wanted)."""
        batch = self._batch
        for i, (token, position, sequence, wanted) in enumerate(rows):
            batch.token[i], batch.pos[i], batch.logits[i] = token, position, wanted
            batch.n_seq_id[i], batch.seq_id[i][0] = 1, sequence
        batch.n_tokens = len(rows)
        code = self._lib.llama_decode(self._context, batch)
        if code:
            raise RuntimeError(f"llama_decode of {len(rows)} tokens gave {code}")

    def _logits(self, row: int) -> NDArray[np.float32]:
        return np.ctypeslib.as_array(self._lib.llama_get_logits_ith(self._context, row), (self._num_tokens,))
