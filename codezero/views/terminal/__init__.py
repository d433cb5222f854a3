"""The terminal view: what a node does, on one screen that renews itself.

    Snapshot ─► pages (pure, lines of text) ─► Screen (terminal: frames out, keys in), both driven by View (a thread)

Text of peers and models is in most of what is shown: it goes through `text.safe`, and never through rich's markup.
"""
