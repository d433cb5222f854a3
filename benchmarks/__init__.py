"""What this node's way of doing things saves, measured on the machine at hand. Run as `python -m benchmarks.NAME`.

    round       one round's solve and learn against GenRL 0.3.0's trainer
    linear      linear layers through oneDNN against torch's own
    gossip      what an exchange costs a node and how long it takes, from 2 real nodes to 10,000 simulated ones
    difficulty  which policy finds the level of problems that teaches simulated solvers most
    learning    whether a node's model gets better, by execution before and after its training
    settled     how right the evaluator is where it asks no model, and which attacks get past that
    evaluator   how right it is with its model, on samples of `codezero eval`
    contest     the same for contest programs, and for tests in the form of `check(candidate)`
    per_test    whether the model can tell the tests of a solution apart
    copies      how often independent groups are equal, and would be taken for copies
    workers     what it costs to read solutions in worker processes, and what it gains
    hostile     a node beside peers that send what once ended, hung or filled it
    proposer    how many problems of a proposer can be published

Times are of this machine, so the tables give ratios. `harness` says how a benchmark is run, `splits` on which problems,
and `tables` writes what was found into the documents. Nothing here is imported by the node.
"""

from codezero.runtime.logs import quiet_libraries

quiet_libraries()  # also sets OMP_WAIT_POLICY=passive, as the node does; both only work before torch is imported
