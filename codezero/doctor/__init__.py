"""`codezero doctor`: what is wrong, or would be, with a node of this configuration on this machine."""
