"""What this node's way of doing things saves, measured on the machine at hand. Run as `python -m benchmarks.NAME`.

    round       one round's solve and learn against GenRL 0.3.0's trainer
    linear      linear layers through oneDNN against torch's own
    gossip      what an exchange costs a node and how long it takes, from 2 real nodes to 10,000 simulated ones
    difficulty  which policy finds the level of problems that teaches simulated solvers most

Times are of this machine, so the tables give ratios. Nothing here is imported by the node.
"""

from codezero.observe.logs import quiet_libraries

quiet_libraries()  # also sets OMP_WAIT_POLICY=passive, as the node does; both only work before torch is imported
