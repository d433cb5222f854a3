"""The terminal view: a node's work on one screen that renews itself.

    Snapshot ─► pages (pure, lines of text) ─► Screen (terminal: frames out, keys in), both driven by View (a thread)

Most of what is shown contains text of peers and models: it goes through `text.safe`, never through rich's markup.
"""
