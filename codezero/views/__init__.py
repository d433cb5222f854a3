"""Views of what nodes wrote, for people: the terminal view, the dashboard, charts and reports."""
