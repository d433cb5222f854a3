"""Decides what to start, from options, else the environment, else questions to the user, else defaults."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from codezero.config import LedgerKind
from codezero.config.names import is_swarm_file
from codezero.config.swarm_file import quoted, read
from codezero.errors import ConfigError
from codezero.launch.terminal import Terminal, is_on
from codezero.publish.tokens import DOWNLOAD_ENVS, PUSH_ENV

MODEL_ENV, CPU_ENV = "MODEL_NAME", "CPU_ONLY"
JOIN_ENV, SIGN_IN_ENV, MARKET_ENV = "CODEZERO_JOIN", "CODEZERO_SIGN_IN", "CODEZERO_MARKET"
_DECIDING = ("swarm=", "preset=", "ledger=")
"""Prefixes of settings that say where a node trains, so that the user is not asked."""
PUBLIC_MARKET = "0x51D4db531ae706a6eC732458825465058fA23a35"
"""The prediction market that the public node's launch script names (gensyn-ai/rl-swarm, PRG_CONTRACT)."""


class Way(Enum):
    """A place to train. CODEZERO_JOIN takes `own`, `local`, `testnet` or the name of a swarm file."""

    OWN = "own"
    LOCAL = "local"
    JOIN = "join"
    TESTNET = "testnet"
    AS_CONFIGURED = "configured"


class SignIn(Enum):
    APP = "app"
    WALLET = "wallet"


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The command line's options; None or empty for one that was not given."""

    way: Way | None = None
    swarm_file: str = ""
    sign_in: SignIn | None = None
    push: bool | None = None
    model: str = ""
    market: bool | None = None
    rounds: int | None = None
    gpus: str = ""
    of_swarm: Sequence[str] = ()
    """The options that were given and mean something only for a swarm of one's own."""
    settings: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """The user's decisions about a start."""

    way: Way
    sign_in: SignIn | None = None
    """The way to get an account; where there is none, None."""
    token: str = field(default="", repr=False)
    """The token of the Hugging Face hub; empty pushes nothing."""
    settings: Sequence[str] = ()
    """The node's `key=value` settings; the user's own come last, so that they win."""
    took: Sequence[str] = ()
    """Descriptions of the defaults taken instead of asking."""


def choose(options: Options, environment: Mapping[str, str], terminal: Terminal) -> Choices:
    """Returns the decisions; asks only where the terminal is interactive. Raises ConfigError: an option or variable has
    an impossible value; NotAnswered: the user left at a question."""
    return _Chooser(options, environment, terminal).choose()


class _Chooser:
    def __init__(self, options: Options, environment: Mapping[str, str], terminal: Terminal) -> None:
        self._options, self._environment, self._terminal = options, environment, terminal
        self._asks = terminal.interactive
        self._took: list[str] = []

    def choose(self) -> Choices:
        given = self._given_way()
        way, swarm_file = given or self._ask_way()
        # A way that was given outright means no more questions, except for the testnet, which needs more choices.
        self._asks = self._asks and (given is None or way is Way.TESTNET)
        tells = given is None or way is Way.TESTNET
        if self._options.of_swarm and way is not Way.OWN:
            raise ConfigError(f"{self._options.of_swarm[0]} is for a swarm of your own: add --own, or leave it out")
        sign_in = self._sign_in() if way is Way.TESTNET or _joins_with_account(swarm_file) else None
        token = self._token()
        settings = _settings_of(way, swarm_file, sign_in)
        settings += self._keystore() if sign_in is SignIn.WALLET else []
        settings += self._model()
        settings += self._market(way)
        settings += ["push.enabled=true"] if token else []
        if self._environment.get(CPU_ENV):  # the GPU image sets 0, so that no node there falls back to the CPU
            settings.append(f"model.device={'cpu' if is_on(self._environment, CPU_ENV) else 'cuda'}")
        settings += self._options.settings
        if self._options.rounds is not None and way is not Way.OWN:
            settings.append(f"rounds={self._options.rounds}")
        return Choices(
            way=way, sign_in=sign_in, token=token, settings=settings, took=tuple(self._took) if tells else ()
        )

    def _given_way(self) -> tuple[Way, str] | None:
        options = self._options
        if options.way is not None:
            return options.way, options.swarm_file
        wanted = self._environment.get(JOIN_ENV, "")
        if any(setting.startswith(_DECIDING) for setting in options.settings):
            return Way.AS_CONFIGURED, ""
        if not wanted:
            return (Way.AS_CONFIGURED, "") if options.settings or options.rounds is not None else None
        if is_swarm_file(wanted):
            return Way.JOIN, wanted
        if wanted not in ("own", "local", "testnet"):
            raise ConfigError(f"{JOIN_ENV}={wanted} is not possible: use own, local, testnet or a swarm file (.yaml)")
        return Way(wanted), ""

    def _ask_way(self) -> tuple[Way, str]:
        if not self._asks:
            self._took.append("a swarm of your own on this machine (others: --join FILE, --testnet, --local)")
            return Way.OWN, ""
        ways = (
            "a swarm of your own on this machine",
            "join a swarm that you were invited to, by its swarm file",
            "the Gensyn testnet, with an account on its chain",
            "alone on this machine",
        )
        chosen = self._terminal.choose("where shall your node train?", ways)
        way = (Way.OWN, Way.JOIN, Way.TESTNET, Way.LOCAL)[chosen]
        return way, self._ask_swarm_file() if way is Way.JOIN else ""

    def _ask_swarm_file(self) -> str:
        while True:
            found = self._terminal.text("swarm file: ")
            if is_swarm_file(found):
                return found
            self._terminal.console.line("a swarm file ends in .yaml; whoever hosts the swarm makes it for you")

    def _sign_in(self) -> SignIn:
        if self._options.sign_in is not None:
            return self._options.sign_in
        wanted = self._environment.get(SIGN_IN_ENV, "")
        if wanted:
            if wanted not in ("app", "wallet"):
                raise ConfigError(f"{SIGN_IN_ENV}={wanted} is not possible: use app or wallet")
            return SignIn(wanted)
        if not self._asks:
            self._took.append("sign-in in the browser (other: --sign-in wallet)")
            return SignIn.APP
        accounts = (
            "sign in in the browser, with email, passkey or Google",
            "a wallet of this machine, which needs some test ETH",
        )
        return (SignIn.APP, SignIn.WALLET)[self._terminal.choose("how does it get its account there?", accounts)]

    def _token(self) -> str:
        """Returns the hub's token, empty for no push. Raises ConfigError: a push is wanted without a token, and nobody
        can be asked for one."""
        found = _given_token(self._environment, PUSH_ENV)
        wants = self._options.push if self._options.push is not None else True if found else None
        if wants is None and self._asks:
            wants = self._terminal.yes("push the trained model to the Hugging Face hub?", default=False)
        if wants is None:
            self._took.append("no push to Hugging Face")
        if not wants:
            return ""
        # Those of the hub's own library are often set for downloads, so they are not taken as a request to push.
        for name in (PUSH_ENV, *DOWNLOAD_ENVS):
            if found := _given_token(self._environment, name):
                return found
        if not self._terminal.interactive:
            raise ConfigError(f"--push needs a token of the Hugging Face hub that may write: set {PUSH_ENV}")
        question = "token of the hub, one that may write (not shown; Enter to push nothing): "
        found = self._terminal.secret(question).strip()
        if not found:
            self._terminal.console.line("nothing is pushed")
        return found

    def _model(self) -> list[str]:
        if any(setting.startswith(("model=", "model.name=")) for setting in self._options.settings):
            return []
        name = self._options.model or self._environment.get(MODEL_ENV, "").strip()
        if not name and self._asks:
            name = self._terminal.text("model: a name, hub id or folder, or Enter for the default: ")
        elif not name:
            self._took.append("the configured model")
        return [f"model.name={quoted(name)}"] if name else []

    def _market(self, way: Way) -> list[str]:
        wants = self._options.market
        if wants is None and self._environment.get(MARKET_ENV):
            wants = is_on(self._environment, MARKET_ENV)
        if wants is None and way is not Way.TESTNET:
            return []
        if wants is None and self._asks:
            wants = self._terminal.yes("take part in the AI prediction market?", default=True)
        elif wants is None:
            self._took.append("prediction market: yes (other: --no-market)")
            wants = True
        known = [f"market.contract_address={PUBLIC_MARKET}"] if wants and way is Way.TESTNET else []
        return [f"market.enabled={str(wants).lower()}", *known]

    def _keystore(self) -> list[str]:
        """Returns the setting that puts a new wallet beside a key that is kept elsewhere, as on a container's volume,
        where it is not lost."""
        key = self._environment.get("IDENTITY_PATH", "")
        if not key or Path("wallet.json").exists():
            return []
        return [f"ledger.keystore={quoted(str(Path(key).with_name('wallet.json')))}"]


def _given_token(environment: Mapping[str, str], variable: str) -> str:
    found = environment.get(variable, "").strip()
    return "" if found.lower() == "none" else found  # the public node's script takes "None" for no token


def _joins_with_account(swarm_file: str) -> bool:
    """Returns True if a swarm file asks for an account of the sign-in app. Raises ConfigError: it cannot be used."""
    return swarm_file != "" and read(Path(swarm_file)).ledger is LedgerKind.modal


def _settings_of(way: Way, swarm_file: str, sign_in: SignIn | None) -> list[str]:
    by_wallet = ["ledger.kind=wallet", "ledger.warn_below_eth=0.01"] if sign_in is SignIn.WALLET else []
    if way is Way.LOCAL:
        return ["preset=local"]
    if way is Way.JOIN:
        return [f"swarm={swarm_file}", *by_wallet]
    if way is Way.TESTNET:
        # The testnet's nodes use GenRL's format and drop groups of any size but 2. `ledger=modal` has its contract.
        return ["swarm=genrl", "rollout.num_generations=2", "judge.enabled=true", "ledger=modal", *by_wallet]
    return []
