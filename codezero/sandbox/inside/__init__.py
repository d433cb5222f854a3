"""The code of the sandbox's own processes, which import only this package and `runtime.kernel` of codezero."""
