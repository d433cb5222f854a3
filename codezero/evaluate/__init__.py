"""Judging attempts without running them: static rules, a frozen model's verdict, and the reward made of both."""
