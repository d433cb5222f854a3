"""Settings of how a node meets others: swarm, ledger."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from codezero.config.check import require


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


class Vote(Enum):
    mean = "mean"
    sum = "sum"


class PeerTasks(Enum):
    any = "any"
    known = "known"


@dataclass
class SwarmConfig:
    network: Network = Network.none
    """How to talk to other nodes: native (signed, compressed), genrl (the format of GenRL 0.3.0), or none to train
    alone."""
    name: str = "codezero"
    """The swarm's name; nodes of other names are other swarms, even on the same bootnodes."""
    num_local: int = 2
    """I, own tasks per round."""
    num_external: int = 0
    """J, at most this many groups of other peers per round."""
    strategy: Strategy = Strategy.uniform
    """Which J of the pool: uniform, by reward (higher mean reward more often), or fresh (newest first)."""
    pool: int = 0
    """Most groups of other peers judged in a round, J is chosen from these; 0 takes 2 x num_external."""
    window: int = 2
    """W, how many of its own rounds back a node takes peers' groups from; each is used at most once."""
    patience: float = 1.0
    """Longest wait for peers in a round, as a share of the time the round has taken so far; silent peers are not
    waited for."""
    vote: Vote = Vote.mean
    """Which peer gets a round's vote: the one whose groups have the highest mean reward, where copies of groups count
    for nothing (mean), or the one with the highest sum of rewards, copies and all (sum)."""
    tasks: PeerTasks = PeerTasks.any
    """Which tasks of peers are trained on: any, or known ones only, which are the built-in problems, what this node's
    own sources hold, and proposals that it took up itself, each with these tests and no others."""
    bootnodes: list[str] = field(default_factory=list)
    """Multiaddresses of nodes to join through, such as /ip4/203.0.113.7/tcp/4001/p2p/Qm...; empty hosts a new swarm."""
    listen: list[str] = field(default_factory=lambda: ["/ip4/0.0.0.0/tcp/0"])
    """Multiaddresses to listen on; port 0 takes a free one."""
    announce: list[str] = field(default_factory=list)
    """Multiaddresses under which others reach this node, where they differ from listen (port forwarding)."""
    reach: Reach = Reach.auto
    """server stores records for others, client only uses the swarm (behind NAT), relay is a server reached through
    the bootnodes; auto takes client when the bootnodes are public and no own address is."""
    identity_path: str | None = None
    """The node's RSA key, made on first start; null takes IDENTITY_PATH, else swarm.pem in the current folder."""
    banned_peers: list[str] = field(default_factory=list)
    """Peer ids whose groups are never used."""
    startup_timeout_s: float = 60.0
    """Longest wait for the p2p daemon to start."""

    def __post_init__(self) -> None:
        require(self.num_local >= 1, "swarm.num_local", self.num_local, "use 1 or more tasks a round")
        require(self.num_external >= 0, "swarm.num_external", self.num_external, "use 0 to train alone")
        named = self.name.isprintable() and 1 <= len(self.name) <= 64
        require(named, "swarm.name", repr(self.name), "use 1 to 64 printable characters")
        fits = self.pool == 0 or self.pool >= self.num_external
        require(fits, "swarm.pool", self.pool, f"use 0, or at least swarm.num_external={self.num_external}")
        require(self.window >= 1, "swarm.window", self.window, "use 1 or more rounds")
        require(self.patience >= 0, "swarm.patience", self.patience, "use 0 to never wait")
        require(self.startup_timeout_s > 0, "swarm.startup_timeout_s", self.startup_timeout_s, "use 60")
        for key in ("bootnodes", "listen", "announce"):
            for address in getattr(self, key):
                require(address.startswith("/"), f"swarm.{key}", address, "write it as /ip4/203.0.113.7/tcp/4001")
        for address in self.bootnodes:
            require("/p2p/" in address, "swarm.bootnodes", address, "end it with /p2p/ and the peer id")


class LedgerKind(Enum):
    local = "local"
    wallet = "wallet"
    modal = "modal"


@dataclass
class LedgerConfig:
    kind: LedgerKind = LedgerKind.local
    """Where rounds, rewards and votes are kept: local is a database in the state folder; wallet also submits them to a
    contract, as an account of this machine, modal through the sign-in app."""
    path: str = ""
    """For local: a database that several nodes of this machine may share; empty takes one in the state folder."""
    round_s: float = 0.0
    """For local: seconds that a round takes by the database's clock, the same for all that share it; 0 counts the
    rounds that the node finishes."""
    rpc_url: str = ""
    """The chain's JSON-RPC server, for wallet and modal, such as http://127.0.0.1:8545."""
    contract_address: str = ""
    """The SwarmCoordinator contract: 0x and 40 hex digits."""
    chain_id: int = 685685
    """The chain that the contract is on; nothing is ever signed for another one. 685685 is the Gensyn testnet."""
    keystore: str = "wallet.json"
    """The account's encrypted key (`codezero wallet create`)."""
    passphrase_file: str | None = None
    """A file that holds the keystore's passphrase; null takes CODEZERO_WALLET_PASSPHRASE, else asks."""
    proxy_url: str = ""
    """For modal: where the sign-in app is, such as http://localhost:3000."""
    org_id: str = ""
    """For modal: the id of the user who has signed in; empty takes the only one in login_dir."""
    account_address: str = ""
    """For modal: the user's smart account; empty reads it in login_dir, which only the app's machine has."""
    login_dir: str = "modal-login/temp-data"
    """For modal: the folder in which the app notes who has signed in, and the token that it asks of nodes."""
    submit_period_s: float = 10800.0
    """The sum of rewards is submitted this long after the first of them, and when the node stops."""
    submit_threshold: float = 0.0
    """The sum is submitted at once from this many points on, up or down; 0 waits for the period."""
    max_fee_gwei: float = 100.0
    """Most that is paid for a unit of gas, in gwei."""
    warn_below_eth: float = 0.01
    """Warn when the account holds less; 0 never does."""
    patience_s: float = 600.0
    """How long a chain that does not answer may keep the node from its next round, in seconds."""
    bootnodes: bool = True
    """Also join the swarm through the bootnodes that the contract names."""

    @property
    def is_shared(self) -> bool:
        """Whether other nodes use it too, so that it has to tell peers apart."""
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
            require(plain, "ledger.proxy_url", self.proxy_url or "''", "give the app, such as http://localhost:3000")
        require(self.chain_id >= 1, "ledger.chain_id", self.chain_id, "use the id that the RPC's chain has")
        require(self.max_fee_gwei > 0, "ledger.max_fee_gwei", self.max_fee_gwei, "use a price such as 100")
        for key in ("round_s", "submit_period_s", "submit_threshold", "warn_below_eth", "patience_s"):
            require(getattr(self, key) >= 0, f"ledger.{key}", getattr(self, key), "use 0 or more")
