import pytest

from codezero.config import Backend, EvaluatorConfig
from codezero.evaluate.backends.choose import choose_backend

ROOMY = {"device_type": "cpu", "fits": True, "has_llama_cpp": True, "has_gguf": True}


@pytest.mark.parametrize(
    ("facts", "expected", "why"),
    [
        ({}, Backend.transformers, "memory holds it"),
        ({"fits": False}, Backend.llama_cpp, "memory does not hold a judge in this process"),
        ({"fits": False, "has_llama_cpp": False}, Backend.transformers, "xllamacpp is not installed"),
        ({"fits": False, "has_gguf": False}, Backend.transformers, "no GGUF file of its weights is known"),
        ({"device_type": "cuda", "fits": False}, Backend.transformers, "cuda is faster"),
        ({"device_type": "mps"}, Backend.transformers, "mps is faster"),
        ({"begun_with": Backend.llama_cpp}, Backend.llama_cpp, "as in earlier rounds"),
        ({"begun_with": Backend.llama_cpp, "has_llama_cpp": False}, Backend.transformers, "memory holds it"),
        ({"begun_with": Backend.transformers, "fits": False}, Backend.llama_cpp, "memory does not hold"),
        ({"begun_with": Backend.openai}, Backend.transformers, "memory holds it"),
    ],
)
def test_auto_takes_transformers_unless_only_llama_cpp_fits(facts, expected, why):
    found, reason = choose_backend(EvaluatorConfig(), **{**ROOMY, **facts})
    assert found is expected
    assert why in reason


@pytest.mark.parametrize("wanted", [backend for backend in Backend if backend is not Backend.auto])
def test_a_backend_that_is_named_is_taken(wanted):
    found = choose_backend(EvaluatorConfig(backend=wanted), **{**ROOMY, "fits": False, "has_llama_cpp": False})
    assert found == (wanted, f"evaluator.backend={wanted.value}")
