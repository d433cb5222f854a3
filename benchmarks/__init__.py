"""Measurements of this node's parts and of whole runs. Run as `python -m benchmarks.NAME`; the docstring of a module
with a command line says what it measures, and which section of the documents has its figures.

Times are of this machine, so the tables give ratios. `harness` says how a benchmark is run, `splits` on which problems,
and `tables` writes what was found into the documents. Nothing here is imported by the node.
"""

from codezero.runtime.logs import quiet_libraries

quiet_libraries()  # also sets OMP_WAIT_POLICY=passive, as the node does; both only work before torch is imported
