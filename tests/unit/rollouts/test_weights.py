"""Weights on their way to a server: exact, small, whole or not at all."""

import json
import random

import numpy as np
import pytest
import torch
import zstandard
from safetensors.torch import load, save

from codezero.config import TrainConfig, Transfer
from codezero.errors import RolloutError, TransferError
from codezero.rollouts import delta
from codezero.rollouts.served import OtherBase, ServedWeights
from codezero.rollouts.snapshots import Snapshots, adapter_weights, base_weights
from codezero.train.method import apply_lora
from tests.builders import tiny_model
from tests.fakes import files_of_at_most


def adapted():
    return apply_lora(tiny_model(), TrainConfig(lora_r=4, lora_alpha=12), 0)


def change(model, rng, share=0.05):
    """Moves some of the trained weights, as an update would, also across the smallest steps of bfloat16."""
    with torch.no_grad():
        for weight in model.parameters():
            if weight.requires_grad:
                chosen = torch.rand(weight.shape, generator=rng) < share
                weight[chosen] *= 1 + 0.1 * torch.randn(int(chosen.sum()), generator=rng)


def bring(snapshots, served, folder):
    """Sends what the server lacks, and returns its size in bytes; 0 if it lacks nothing."""
    size = 0
    while found := snapshots.open_for(served.name):
        with found[1] as file:
            content = file.read()
        taken_over(served, content, folder)
        assert served.name == found[0]
        size += len(content)
    return size


def same(model, served):
    """Whether the server's weights are the model's, rounded to bfloat16."""
    pairs = zip(base_weights(model), base_weights(served.model), strict=True)
    return all(torch.equal(delta.rounded(own), theirs.data.cpu().bfloat16()) for (_, own), (_, theirs) in pairs)


def num_bytes(model):
    """Of all its weights, as they are sent."""
    return 2 * sum(weight.numel() for _, weight in base_weights(model))


def exact(model, served):
    """Whether the server computes with no more digits than these."""
    return same(model, served) and all(torch.equal(w, w.bfloat16().to(w.dtype)) for _, w in base_weights(served.model))


@pytest.mark.parametrize("far", [1, 254, 255, 256, 70_000])
def test_a_difference_has_all_values_that_differ(far):
    old = torch.zeros(200_000, dtype=torch.bfloat16)
    new = old.clone()
    new[[0, far, far + 1, far + 70_000]] = torch.tensor([1.0, -2.5, 3e-30, float("inf")], dtype=torch.bfloat16)
    found = delta.difference(old, new)
    places, values = delta.read(found, 200_000)
    delta.bits(old)[places] = values
    assert torch.equal(old, new)
    assert len(places) == 4
    assert delta.difference(old, new) == {}


@pytest.mark.parametrize(
    "change",
    [
        lambda parts: parts.pop("low"),
        lambda parts: parts.update(more=torch.zeros(1, dtype=torch.uint8)),
        lambda parts: parts.update(high=torch.zeros(1, dtype=torch.uint8)),
        lambda parts: parts.update(gaps=torch.zeros(2, dtype=torch.int64)),
        lambda parts: parts.update(far=torch.tensor([1, 2], dtype=torch.int32)),
        lambda parts: parts.update(gaps=torch.tensor([255, 9], dtype=torch.uint8), far=torch.tensor([-300]).int()),
        lambda parts: parts.update(gaps=torch.tensor([255, 9], dtype=torch.uint8), far=torch.tensor([2**31 - 1]).int()),
        lambda parts: parts.update(gaps=torch.tensor([8, 1], dtype=torch.uint8)),
    ],
    ids=[
        "missing",
        "one more",
        "too few values",
        "other numbers",
        "too many far",
        "backwards",
        "far outside",
        "outside",
    ],
)
def test_what_is_no_difference_is_refused(change):
    parts = delta.difference(torch.zeros(10).bfloat16(), torch.eye(10)[3].bfloat16() + torch.eye(10)[7].bfloat16())
    assert len(delta.read(parts, 10)[0]) == 2
    change(parts)
    with pytest.raises(TransferError):
        delta.read(parts, 10)


def test_a_server_with_the_weights_that_the_node_starts_with_needs_none(tmp_path):
    model = tiny_model()
    snapshots, served = Snapshots(model, tmp_path, Transfer.auto), ServedWeights(tiny_model())
    snapshots.take(model)
    assert bring(snapshots, served, tmp_path) == 0
    assert ServedWeights(tiny_model(seed=1)).base != snapshots.base


@pytest.mark.parametrize("transfer", Transfer)
def test_updates_of_weights_that_are_in_bfloat16_already_are_sent_too(tmp_path, transfer):
    model = tiny_model().bfloat16()
    snapshots, served = Snapshots(model, tmp_path, transfer), ServedWeights(tiny_model())
    for _ in range(2):
        change(model, torch.Generator().manual_seed(1))
        snapshots.take(model)
        assert bring(snapshots, served, tmp_path) > 0
        assert exact(model, served)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_after_200_updates_with_kills_and_lost_uploads_both_sides_have_the_same(tmp_path, dtype):
    model, rng, chance = tiny_model(), torch.Generator().manual_seed(1), random.Random(1)
    snapshots, served = Snapshots(model, tmp_path / "a", Transfer.auto), ServedWeights(tiny_model().to(dtype))
    kinds = {"nothing": 0, "difference": 0, "all": 0}
    whole = num_bytes(model)
    for number in range(200):
        change(model, rng)
        if chance.random() < 0.05:  # the trainer is killed, and goes on with other names
            snapshots = Snapshots(tiny_model(), tmp_path / "a", Transfer.auto)
        snapshots.take(model)
        if chance.random() < 0.05:  # the server is killed
            served = ServedWeights(tiny_model().to(dtype))
        if chance.random() < 0.1:  # the link is lost
            continue
        size = bring(snapshots, served, tmp_path)
        kinds["nothing" if size == 0 else "difference" if size < whole else "all"] += 1
        assert exact(model, served), number
        assert bring(snapshots, served, tmp_path) == 0
    assert kinds["nothing"] == 0
    assert kinds["difference"] > 3 * kinds["all"] > 30


def test_a_server_that_has_missed_updates_gets_these_while_all_are_smaller_than_the_weights(tmp_path):
    model, rng = tiny_model(), torch.Generator().manual_seed(1)
    snapshots = Snapshots(model, tmp_path / "a", Transfer.auto)
    behind, far_behind = (ServedWeights(tiny_model()) for _ in range(2))
    whole = num_bytes(model)
    for number in range(40):
        change(model, rng)
        snapshots.take(model)
        assert sum(file.stat().st_size for file in (tmp_path / "a").iterdir()) <= whole
        if number == 35:
            bring(snapshots, behind, tmp_path)
    assert 0 < bring(snapshots, behind, tmp_path) < whole
    assert exact(model, behind)
    assert bring(snapshots, far_behind, tmp_path) > whole
    assert exact(model, far_behind)


def test_a_difference_takes_at_most_three_and_a_half_bytes_a_value():
    """At the density of a learning rate of 1e-6, on weights as they are drawn at the start."""
    rng = np.random.default_rng(1)
    old = torch.from_numpy(rng.normal(0, 0.02, 1_000_000).astype(np.float32)).bfloat16()
    chosen = torch.from_numpy(rng.random(1_000_000) < 0.01)
    new = torch.where(chosen, (old.view(torch.int16) + 1).view(torch.bfloat16), old)
    packed = zstandard.compress(save(delta.difference(old, new)), 1)
    assert len(packed) < 3.5 * chosen.sum()


def test_a_difference_of_all_values_is_smaller_than_all_of_them(tmp_path):
    model, rng = tiny_model(), torch.Generator().manual_seed(1)
    snapshots = Snapshots(model, tmp_path, Transfer.auto)
    with torch.no_grad():
        for weight in model.parameters():
            weight.normal_(generator=rng)
    snapshots.take(model)
    served = ServedWeights(tiny_model())
    assert bring(snapshots, served, tmp_path) < num_bytes(model)
    assert exact(model, served)


def test_adapters_go_whole_and_the_base_under_them_stays(tmp_path):
    model, rng = adapted(), torch.Generator().manual_seed(1)
    snapshots, served = Snapshots(model, tmp_path, Transfer.auto), ServedWeights(tiny_model())
    for _ in range(3):
        change(model, rng)
        snapshots.take(model)
        assert bring(snapshots, served, tmp_path) > 0
        theirs = adapter_weights(served.model)
        for name, weight in adapter_weights(model).items():
            assert torch.equal(delta.rounded(weight).float(), theirs[name].data)
    ids = torch.tensor([[1, 2, 3]])
    assert torch.allclose(served.model(ids).logits, model(ids).logits, atol=0.05)
    assert torch.equal(served.model.get_base_model().lm_head.weight, tiny_model().lm_head.weight)


def opened(snapshots, has=""):
    with snapshots.open_for(has)[1] as file:
        return file.read()


def taken_over(served, content, folder):
    (folder / "upload").write_bytes(content)
    served.take_over(folder / "upload")


def with_facts(content, **changes):
    """The file with other facts."""
    size = int.from_bytes(content[:8], "little")
    facts = {**json.loads(json.loads(content[8 : 8 + size])["__metadata__"]["codezero"]), **changes}
    return save(load(content), {"codezero": json.dumps(facts)})


@pytest.fixture
def prepared(tmp_path):
    """A model that has changed, its snapshots, and a server with the weights before."""
    model = tiny_model()
    snapshots = Snapshots(model, tmp_path / "a", Transfer.auto)
    change(model, torch.Generator().manual_seed(1))
    snapshots.take(model)
    return model, snapshots, ServedWeights(tiny_model())


def before(served):
    return {name: weight.clone() for name, weight in base_weights(served.model)}


def is_unchanged(served, kept):
    return all(torch.equal(weight, kept[name]) for name, weight in base_weights(served.model))


DAMAGE = {
    "empty": lambda content: b"",
    "no file of weights": lambda content: b"PK\x03\x04" + content[4:],
    "cut off": lambda content: content[: len(content) // 2],
    "a header of 2 ** 60 bytes": lambda content: (2**60).to_bytes(8, "little") + content[8:],
    "a pickle": lambda content: b"\x80\x04cos\nsystem\n(S'touch pwned'\ntR.",
    "zeros by the gigabyte": lambda content: zstandard.compress(bytes(1 << 30), 1),
    "a cut frame": lambda content: zstandard.compress(content, 1)[:-9],
    "other facts": lambda content: save(load(content), {"codezero": "{}"}),
    "no facts": lambda content: save(load(content)),
    "a flipped bit": lambda content: content[:-1] + bytes([content[-1] ^ 1]),
    "another hash": lambda content: with_facts(content, whole="0" * 32),
    "a name to print": lambda content: with_facts(content, name="\x1b[2J"),
    "another kind": lambda content: with_facts(content, kind="adapter"),
    "a huge rank": lambda content: with_facts(content, kind="adapter", lora={"r": 10**9, "alpha": 1}),
    "fewer weights": lambda content: save(dict(list(load(content).items())[1:]), {"codezero": facts_of(content)}),
}


def facts_of(content):
    size = int.from_bytes(content[:8], "little")
    return json.loads(content[8 : 8 + size])["__metadata__"]["codezero"]


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_file_is_refused_and_changes_nothing(tmp_path, prepared, damage):
    _, snapshots, served = prepared
    kept = before(served)
    with pytest.raises(TransferError):
        taken_over(served, damage(opened(snapshots)), tmp_path)
    assert served.name == served.base
    assert is_unchanged(served, kept)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "upload"]
    taken_over(served, opened(snapshots), tmp_path)
    assert served.name == snapshots.name


def test_a_difference_with_a_wrong_checksum_or_to_other_weights_asks_for_all(tmp_path, prepared):
    model, snapshots, served = prepared
    content = zstandard.decompress(opened(snapshots, served.base), max_output_size=1 << 24)
    kept = before(served)
    facts = json.loads(facts_of(content))
    wrong = {**facts["sums"], next(iter(facts["sums"])): 1}
    for changes in ({"sums": wrong}, {"base": "0" * 32}):
        with pytest.raises(OtherBase, match="send all of them"):
            taken_over(served, with_facts(content, **changes), tmp_path)
        assert is_unchanged(served, kept)
    with pytest.raises(TransferError, match="does not have"):
        taken_over(served, with_facts(content, sums={**facts["sums"], "other": 1}), tmp_path)
    taken_over(served, content, tmp_path)
    assert exact(model, served)


def test_a_server_that_fails_while_it_changes_weights_wants_all_of_them(tmp_path, prepared, monkeypatch):
    model, snapshots, served = prepared
    content = opened(snapshots, served.base)
    changes = [0]

    def failing(*arguments):
        changes[0] += 1
        if changes[0] > len(list(base_weights(model))) + 3:  # all were checked, and some are changed
            raise MemoryError
        return read(*arguments)

    read = delta.read
    monkeypatch.setattr(delta, "read", failing)
    with pytest.raises(MemoryError):
        taken_over(served, content, tmp_path)
    monkeypatch.undo()
    assert served.name == ""
    with pytest.raises(OtherBase):
        taken_over(served, content, tmp_path)
    bring(snapshots, served, tmp_path)
    assert exact(model, served)


def test_files_of_a_killed_trainer_are_not_sent_under_new_names(tmp_path):
    model, served = tiny_model(), ServedWeights(tiny_model())
    killed = Snapshots(tiny_model(), tmp_path, Transfer.full)
    change(model, torch.Generator().manual_seed(1))
    killed.take(model)
    bring(killed, served, tmp_path)
    again = Snapshots(tiny_model(), tmp_path, Transfer.full)  # begins anew, where it had been killed before a save
    bring(again, served, tmp_path)
    assert served.name == again.name
    assert same(tiny_model(), served)


def test_files_are_gone_at_the_end_and_an_upload_under_way_writes_none_anew(tmp_path):
    snapshots = Snapshots(tiny_model(), tmp_path, Transfer.auto)
    model = tiny_model()
    change(model, torch.Generator().manual_seed(1))
    snapshots.take(model)
    (tmp_path / "server").mkdir()  # of a rollout server with the same state_dir
    _, under_way = snapshots.open_for("")
    with under_way:
        assert len(list(tmp_path.glob("*.weights"))) == 2
        snapshots.close()
        assert [path.name for path in tmp_path.iterdir()] == ["server"]
        assert under_way.read()
    assert snapshots.open_for("") is None
    assert [path.name for path in tmp_path.iterdir()] == ["server"]


def test_runs_that_train_otherwise_need_a_server_that_starts_again(tmp_path):
    full, lora = tiny_model(), adapted()
    files = {}
    for name, model in (("full", full), ("lora", lora)):
        snapshots = Snapshots(model, tmp_path / name, Transfer.auto)
        change(model, torch.Generator().manual_seed(1))
        snapshots.take(model)
        files[name] = opened(snapshots)
    for first, then in (("full", "lora"), ("lora", "full")):
        served = ServedWeights(tiny_model())
        taken_over(served, files[first], tmp_path)
        with pytest.raises(TransferError, match="start it again"):
            taken_over(served, files[then], tmp_path)


def test_damaged_adapters_leave_a_server_to_all_weights(tmp_path, prepared):
    _, snapshots, served = prepared
    others = Snapshots(adapted(), tmp_path / "b", Transfer.auto)
    others.take(adapted())
    with pytest.raises(TransferError, match="damaged on its way"):
        taken_over(served, with_facts(opened(others), whole="0" * 32), tmp_path)
    taken_over(served, opened(snapshots), tmp_path)
    assert served.name == snapshots.name


def test_adapters_of_another_scale_need_a_server_that_starts_again_too(tmp_path):
    files = []
    for alpha in (12, 24):
        model = apply_lora(tiny_model(), TrainConfig(lora_r=4, lora_alpha=alpha), 0)
        snapshots = Snapshots(model, tmp_path / str(alpha), Transfer.auto)
        snapshots.take(model)
        files.append(opened(snapshots))
    served = ServedWeights(tiny_model())
    taken_over(served, files[0], tmp_path)
    with pytest.raises(TransferError, match=r"lora_r=4 and lora_alpha=12: start it again"):
        taken_over(served, files[1], tmp_path)


@pytest.mark.parametrize("transfer", Transfer)
def test_a_full_disk_leaves_no_part_of_a_file_and_costs_nothing_once_there_is_room(tmp_path, transfer):
    model, served = tiny_model(), ServedWeights(tiny_model())
    snapshots = Snapshots(model, tmp_path / "a", transfer)
    change(model, torch.Generator().manual_seed(1))
    with files_of_at_most(1000):
        snapshots.take(model)
        for has in (served.name, ""):
            with pytest.raises(RolloutError, match=r"cannot write weights.*File too large; free some space"):
                snapshots.open_for(has)
    assert list((tmp_path / "a").iterdir()) == []
    assert bring(snapshots, served, tmp_path) > 0
    assert exact(model, served)


@pytest.mark.parametrize("also_folder", [False, True])
def test_files_that_a_user_deletes_to_free_space_are_made_again(tmp_path, also_folder):
    model, served = tiny_model(), ServedWeights(tiny_model())
    snapshots, rng = Snapshots(model, tmp_path / "a", Transfer.auto), torch.Generator().manual_seed(1)
    for _ in range(3):
        change(model, rng)
        snapshots.take(model)
        for file in (tmp_path / "a").glob("*"):
            file.unlink()
        if also_folder and (tmp_path / "a").exists():
            (tmp_path / "a").rmdir()
    assert bring(snapshots, served, tmp_path) > 0
    assert exact(model, served)


def test_a_folder_that_cannot_be_written_says_what_to_do(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(RolloutError, match=r"free some space, or set rollout\.engine=transformers"):
        Snapshots(tiny_model(), tmp_path / "file" / "below", Transfer.auto)
