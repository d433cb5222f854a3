import contextlib
import os

import pytest

from tests.containers import compose, packages
from tests.containers.engine import SKIP_ENV, WAYS_OUT, EngineError
from tests.containers.engine import engine as an_engine
from tests.e2e.checkout import fresh_clone

CPU_TORCH = "torch==2.13.0+cpu"
DECOYS = (
    *("swarm.pem", ".env", "codezero/.env", "codezero/key.pem", "state/decoy"),
    *("modal-login/temp-data/decoy", "modal-login/sign-in.env", "modal-login/.env"),
)


@pytest.fixture(scope="session")
def engine():
    if os.environ.get(SKIP_ENV):
        pytest.skip(f"{SKIP_ENV} is set: no image was built or run")
    with contextlib.ExitStack() as stack:
        try:
            found = stack.enter_context(an_engine())
        except EngineError as error:
            pytest.fail(f"{error}\n{WAYS_OUT}", pytrace=False)
        yield found


@pytest.fixture(scope="session")
def context(tmp_path_factory):
    """What a fresh clone has, as a folder to build from, with things in it that must not get into an image."""
    folder = tmp_path_factory.mktemp("context")
    fresh_clone(folder)
    for name in DECOYS:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"DECOY={packages.MARK}\n")
    return folder


@pytest.fixture(scope="session")
def build(engine, context, tmp_path_factory):
    """build(tag, *options, file=...) builds from the context; returns what the build printed."""
    arguments = ["--build-arg", f"PYTHON_IMAGE={engine.python_image()}"]
    if packages.torch_is_at_hand(CPU_TORCH):
        arguments += ["--build-arg", "TORCH_INDEX="]
    with packages.secrets(tmp_path_factory.mktemp("packages")) as secrets:

        def build(tag, *options, file="Dockerfile.cpu"):
            command = ["build", "--progress", "plain", "--file", str(context / file), "--tag", tag]
            ended = engine.run(
                *[*command, *arguments, *secrets, *options, str(context)],
                timeout_s=1200,
                environment={"DOCKER_BUILDKIT": "1"},
            )
            return ended.stdout

        yield build


@pytest.fixture(scope="session")
def image(build):
    """A node with the launch script and without the sign-in app, under a name that no user has."""
    build("codezero-tests/node", "--target", "node")
    return "codezero-tests/node"


@pytest.fixture(scope="session")
def full_image(build, image):
    """With the sign-in app, as swarm-cpu has it."""
    build("codezero-tests/cpu")
    return "codezero-tests/cpu"


@pytest.fixture(scope="session")
def composers(engine, tmp_path_factory):
    """The versions of compose to test with, oldest first."""
    found = compose.find(engine, tmp_path_factory.mktemp("compose"))
    if not found:
        raise EngineError("there is no docker-compose and no docker compose to test with: install one of them")
    return found
