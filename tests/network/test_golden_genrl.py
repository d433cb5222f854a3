"""The golden round's rollouts in GenRL's format have the bytes that GenRL 0.3.0's own packer gives them."""

import json

from tests.golden.peers import as_bytes, genrl_tasks
from tests.golden.record import FILE
from tests.golden.round import GENRL
from tests.network.test_genrl import genrl_codec


def test_genrl_packs_the_golden_round_s_records_alike(genrl_env):
    golden = json.loads(FILE.read_text(encoding="utf-8"))
    (stored,) = [record for record in golden["genrl"]["stored"] if record["key"] == "7"]
    ours = as_bytes(stored["value"])
    assert genrl_codec(genrl_env, records=[ours])["repacked"] == [ours.hex()]
    for name, tasks in genrl_tasks().items():
        assert genrl_codec(genrl_env, tasks=tasks)["packed"] == golden[GENRL][name]
