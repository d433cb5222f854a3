"""What people look at, from what nodes wrote: the terminal view, the dashboard, charts and reports."""
