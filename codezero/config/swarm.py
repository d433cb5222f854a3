"""Settings of the swarm and the ledger."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from codezero.config.check import require

MAX_GENERATIONS = 64
"""The most attempts of a group that nodes send each other."""


class Network(Enum):
    none = "none"
    native = "native"
    genrl = "genrl"


class Reach(Enum):
    auto = "auto"
    server = "server"
    relay = "relay"
    client = "client"


class Strategy(Enum):
    uniform = "uniform"
    reward = "reward"
    fresh = "fresh"


class Weighting(Enum):
    none = "none"
    accuracy = "accuracy"


class Vote(Enum):
    mean = "mean"
    sum = "sum"


class PeerTasks(Enum):
    any = "any"
    known = "known"


@dataclass
class SwarmConfig:
    network: Network = Network.none
    """Protocol to other nodes: native (signed, compressed), genrl (the format of GenRL 0.3.0), or none to train
    alone."""
    name: str = "codezero"
    """The swarm's name; nodes with other names form other swarms, even with the same bootnodes."""
    num_local: int = 0
    """I, the number of own tasks per round; 0 takes as many as memory holds, at least 2, up to 64 attempts together."""
    num_external: int = 0
    """J, the most groups of other peers to train on per round."""
    strategy: Strategy = Strategy.uniform
    """Choice of the J groups from the pool: uniform, reward (higher mean reward more often), or fresh (newest
    first)."""
    weighting: Weighting = Weighting.none
    """Weight of peers' groups in an update: none, or accuracy, the share of right attempts among a peer's latest ones,
    as this node judges them, over its own share, at most 2."""
    pool: int = 0
    """Most groups of other peers judged in a round, of which J are chosen; 0 takes 2 x num_external."""
    window: int = 2
    """W, the number of its own latest rounds from which a node uses peers' groups; each is used at most once."""
    patience: float = 1.0
    """Longest wait for peers in a round, as a share of the round's time so far, at most an hour; silent peers are not
    waited for."""
    logprobs: bool = False
    """Send the log-probs of own attempts with them, and weigh those of peers with the same model.name by the log-probs
    that they send, where these are plausible (docs/learning.md). In native swarms only."""
    vote: Vote = Vote.mean
    """The peer that gets a round's vote: mean votes for the highest mean reward of groups without copies, sum for the
    highest sum of rewards, copies included."""
    tasks: PeerTasks = PeerTasks.known
    """Tasks of peers to train on: known ones only, which are the built-in problems, those of the datasets that this
    node draws from, and proposals that it has checked itself, each only with the tests known here; or any, with which
    one peer can make a node unlearn what it could. swarm=genrl and preset=faithful set any."""
    bootnodes: list[str] = field(default_factory=list)
    """Multiaddresses of nodes through which to join, such as /ip4/203.0.113.7/tcp/4001/p2p/Qm...; empty starts a new
    swarm."""
    listen: list[str] = field(default_factory=lambda: ["/ip4/0.0.0.0/tcp/0"])
    """Multiaddresses to listen on; port 0 takes a free one."""
    announce: list[str] = field(default_factory=list)
    """Multiaddresses at which others reach this node, if they differ from listen (port forwarding)."""
    reach: Reach = Reach.auto
    """Role in the network: server stores records for others, client only uses the swarm (behind NAT), relay is a server
    that others reach through the bootnodes; auto takes client if the bootnodes are public and no own address is."""
    identity_path: str | None = None
    """File of the node's RSA key, made at the first start; null takes IDENTITY_PATH, else swarm.pem in the current
    folder."""
    banned_peers: list[str] = field(default_factory=list)
    """Peer ids whose groups are never used."""
    startup_timeout_s: float = 60.0
    """Longest wait for the p2p daemon to start, in seconds."""

    def __post_init__(self) -> None:
        require(self.num_local >= 0, "swarm.num_local", self.num_local, "use 0 to choose by memory")
        require(self.num_external >= 0, "swarm.num_external", self.num_external, "use 0 to train alone")
        named = self.name.isprintable() and 1 <= len(self.name) <= 64
        require(named, "swarm.name", repr(self.name), "use 1 to 64 printable characters")
        has_use = self.pool == 0 or self.num_external > 0
        require(has_use, "swarm.pool", self.pool, "use 0, since swarm.num_external=0 trains on none, or set both")
        fits = self.pool == 0 or self.pool >= self.num_external
        require(fits, "swarm.pool", self.pool, f"use 0, or at least swarm.num_external={self.num_external}")
        has_logprobs = self.network is not Network.genrl
        require(has_logprobs or not self.logprobs, "swarm.logprobs", True, "GenRL's format has none: use swarm=native")
        require(self.window >= 1, "swarm.window", self.window, "use 1 or more rounds")
        require(self.patience >= 0, "swarm.patience", self.patience, "use 0 to never wait")
        require(self.startup_timeout_s > 0, "swarm.startup_timeout_s", self.startup_timeout_s, "use 60")
        for key in ("bootnodes", "listen", "announce"):
            for address in getattr(self, key):
                require(address.startswith("/"), f"swarm.{key}", address, "write it as /ip4/203.0.113.7/tcp/4001")
        for address in self.bootnodes:
            require("/p2p/" in address, "swarm.bootnodes", address, "end it with /p2p/ and the peer id")


PASSPHRASE_ENV = "CODEZERO_WALLET_PASSPHRASE"


class LedgerKind(Enum):
    local = "local"
    wallet = "wallet"
    modal = "modal"


@dataclass
class LedgerConfig:
    kind: LedgerKind = LedgerKind.local
    """Storage of rounds, rewards and votes: local is a database in the state folder; wallet also submits them to a
    contract from an account on this machine, modal through the sign-in app."""
    path: str = ""
    """Database file for local, which several nodes of this machine may share; empty takes one in the state folder."""
    round_s: float = 0.0
    """Seconds per round for local, by the database's clock and the same for all nodes that share it; 0 counts the
    rounds that the node finishes."""
    rpc_url: str = ""
    """URL of the chain's JSON-RPC server for wallet and modal, such as http://127.0.0.1:8545."""
    contract_address: str = ""
    """Address of the SwarmCoordinator contract: 0x and 40 hex digits."""
    chain_id: int = 685685
    """Id of the contract's chain; transactions are signed for no other. 685685 is the Gensyn testnet."""
    keystore: str = "wallet.json"
    """File of the account's encrypted key (`codezero wallet create`)."""
    passphrase_file: str | None = None
    """File with the keystore's passphrase; null takes CODEZERO_WALLET_PASSPHRASE, else asks."""
    proxy_url: str = ""
    """URL of the sign-in app for modal, such as http://127.0.0.1:3000."""
    org_id: str = ""
    """Id of the signed-in user for modal; empty takes the only one in login_dir."""
    account_address: str = ""
    """Address of the user's smart account for modal; empty reads it from login_dir, which only the app's machine
    has."""
    login_dir: str = "modal-login/temp-data"
    """Folder for modal in which the app stores the signed-in users, and the token that nodes have to send."""
    submit_period_s: float = 10800.0
    """Seconds after the first reward until the sum of rewards is submitted; it is also submitted when the node
    stops."""
    submit_threshold: float = 0.0
    """Points, positive or negative, at which the sum is submitted at once; 0 waits for the period."""
    max_fee_gwei: float = 100.0
    """Highest price for a unit of gas, in gwei."""
    warn_below_eth: float = 0.01
    """Balance in ETH below which the node warns; 0 never warns."""
    patience_s: float = 600.0
    """Longest time in seconds that a chain which does not answer, or is behind the node, may delay the next round."""
    bootnodes: bool = True
    """Join the swarm through the contract's bootnodes too."""

    @property
    def is_shared(self) -> bool:
        """True if other nodes use the ledger too, so that it has to distinguish peers."""
        return self.kind is not LedgerKind.local or self.path != ""

    def __post_init__(self) -> None:
        if self.kind is not LedgerKind.local:
            require(not self.path, "ledger.path", self.path, "only ledger=local has a database to share")
            require(not self.round_s, "ledger.round_s", self.round_s, "the contract says which round it is: use 0")
            require(self.rpc_url != "", "ledger.rpc_url", "''", "give the chain's RPC, such as http://127.0.0.1:8545")
            address = self.contract_address
            given = address.startswith("0x") and len(address) == 42
            require(given, "ledger.contract_address", address or "''", "give the coordinator: 0x and 40 hex digits")
        if self.kind is LedgerKind.modal:
            plain = self.proxy_url != "" and "?" not in self.proxy_url
            require(plain, "ledger.proxy_url", self.proxy_url or "''", "give the app, such as http://127.0.0.1:3000")
        require(self.chain_id >= 1, "ledger.chain_id", self.chain_id, "use the id that the RPC's chain has")
        require(self.max_fee_gwei > 0, "ledger.max_fee_gwei", self.max_fee_gwei, "use a price such as 100")
        for key in ("round_s", "submit_period_s", "submit_threshold", "warn_below_eth", "patience_s"):
            require(getattr(self, key) >= 0, f"ledger.{key}", getattr(self, key), "use 0 or more")
