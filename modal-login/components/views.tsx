"use client";

import type { ReactNode } from "react";
import type { Account, Machine } from "@/app/api/machine/route";

function Card({ title, children, busy }: { title: string; children?: ReactNode; busy?: boolean }) {
  return (
    <section className="card" aria-live="polite" aria-busy={busy ?? false}>
      <h1>{title}</h1>
      {children}
    </section>
  );
}

export function Loading() {
  return (
    <Card title="Loading…" busy>
      <p className="quiet">Looking for your account and for Alchemy.</p>
      <div className="bar" />
    </Card>
  );
}

/** Rendered in the browser alone, as it asks for the page's port. */
export function Insecure() {
  const port = window.location.port || "80";
  return (
    <Card title="Open this page on localhost">
      <p>
        This browser offers its cryptography (<code>crypto.subtle</code>) only to pages that cannot be changed on the way.
        Signing in needs it.
      </p>
      <p>
        On the machine that runs the node, open <code>http://localhost:{port}</code>. From another machine, forward the
        port first:
      </p>
      <pre>{`ssh -L ${port}:localhost:${port} user@your-node`}</pre>
    </Card>
  );
}

export function Installing() {
  return (
    <Card title="Setting up your node’s key" busy>
      <p className="quiet">Your account signs a permission for this machine. A passkey may ask you once more.</p>
      <div className="bar" />
    </Card>
  );
}

export function Failed({ reason, again, logOut }: { reason: string; again: () => void; logOut: () => void }) {
  return (
    <Card title="Your node’s key could not be set up">
      <p role="alert" className="problem">
        {reason}
      </p>
      <p>You are signed in, but your node cannot act for you yet.</p>
      <div className="buttons">
        <button className="primary" onClick={again}>
          Try again
        </button>
        <button onClick={logOut}>Log out</button>
      </div>
    </Card>
  );
}

export function Unreachable({ reason, machine, again }: { reason: string; machine: Machine; again: () => void }) {
  return (
    <Card title="Alchemy cannot be reached">
      <p role="alert" className="problem">
        {reason}
      </p>
      <p>Signing in goes through Alchemy. You can wait (this page asks again every 10 seconds), or go on without it:</p>
      <ul>
        <li>
          <strong>Your own swarm</strong>, without an account or a chain:
          <pre>./run_rl_swarm.sh --nodes 2</pre>
        </li>
        <li>
          <strong>A wallet on this machine</strong> instead of a sign-in; it needs some ETH for fees:
          <pre>./run_rl_swarm.sh --testnet --sign-in wallet</pre>
        </li>
      </ul>
      {machine.accounts.some((account) => !account.expired) && (
        <p className="quiet">
          Someone has signed in on this machine before: a node with that account trains on, and submits its rewards when
          Alchemy is back.
        </p>
      )}
      <div className="buttons">
        <button className="primary" onClick={again}>
          Try again now
        </button>
      </div>
    </Card>
  );
}

export function SignedOut({ machine, ended, signIn }: { machine: Machine; ended: boolean; signIn: () => void }) {
  const usable = machine.accounts.filter((account) => !account.expired);
  const expired = machine.accounts.length > usable.length;
  return (
    <Card title={title(usable.length > 0, expired, ended)}>
      {usable.length > 0 ? (
        <>
          <p>
            {ended ? "Your session in this browser has ended. That does not matter to your node: it" : "Your node"} has a
            key of its own, and you can close this page.
          </p>
          {usable.map((account) => (
            <AccountFacts key={account.orgId} account={account} machine={machine} />
          ))}
        </>
      ) : (
        <p>
          {expired
            ? "The key that you gave your node has run out. Sign in again with the same email or passkey: your peers stay yours."
            : "With an account, your node can register on the swarm’s chain and be rewarded. Many nodes may share one."}
        </p>
      )}
      <div className="buttons">
        <button className={usable.length > 0 ? "" : "primary"} onClick={signIn}>
          {machine.accounts.length > 0 || ended ? "Sign in again" : "Sign in"}
        </button>
      </div>
      {usable.length === 0 && <p className="quiet">Email, passkey or Google; your keys are made and kept by Alchemy.</p>}
    </Card>
  );
}

function title(usable: boolean, expired: boolean, ended: boolean): string {
  if (usable) return "Your node is signed in";
  return expired || ended ? "Your session has expired" : "Sign in for your node";
}

interface ReadyProps {
  machine: Machine;
  orgId: string;
  email: string | undefined;
  logOut: () => void;
}

export function Ready({ machine, orgId, email, logOut }: ReadyProps) {
  const account = machine.accounts.find((one) => one.orgId === orgId);
  return (
    <Card title="You are signed in">
      <p>{email ? `As ${email}. ` : ""}Your node can go on now: you can close this page.</p>
      {account && <AccountFacts account={account} machine={machine} />}
      <div className="buttons">
        <button onClick={logOut}>Log out</button>
      </div>
      <p className="quiet">
        Logging out ends the session of this browser. Your node keeps its key, in <code>modal-login/temp-data</code>.
      </p>
    </Card>
  );
}

function AccountFacts({ account, machine }: { account: Account; machine: Machine }) {
  const registered = account.peers ?? [];
  const elsewhere = registered.filter((peer) => !machine.peers.includes(peer));
  const state = (peer: string) =>
    account.peers === null ? "the chain cannot be asked now" : registered.includes(peer) ? "registered" : "not registered yet";
  return (
    <dl>
      <dt>Account</dt>
      <dd>
        <code>{account.accountAddress}</code>
      </dd>
      <dt>This machine’s peers</dt>
      {machine.peers.length === 0 && <dd className="quiet">none yet: a node makes its identity when it first starts</dd>}
      {machine.peers.map((peer) => (
        <dd key={peer}>
          <code>{peer}</code> <span className="tag">{state(peer)}</span>
        </dd>
      ))}
      {elsewhere.length > 0 && <dt>Other peers of this account</dt>}
      {elsewhere.map((peer) => (
        <dd key={peer}>
          <code>{peer}</code>
        </dd>
      ))}
      {account.expiresAt > 0 && account.expiresAt < 4e9 && (
        <>
          <dt>The node’s key holds until</dt>
          <dd>{new Date(account.expiresAt * 1000).toLocaleDateString(undefined, { dateStyle: "long" })}</dd>
        </>
      )}
    </dl>
  );
}
