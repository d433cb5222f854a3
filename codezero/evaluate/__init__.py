"""Judges attempts without running them: static rules, dry runs, a frozen model's verdict, and the reward they make."""
